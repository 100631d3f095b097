"""Names that people type and that no row can answer: each with the sentence that says why."""

import re

from gpucost.gate import beside

_SENTENCES = [(kind, re.compile(sign), why) for kind, sign, why in beside(__file__, "unlisted")[1:]]


def why_not(kind: str, name: str) -> str:
    """Return why a well-known name has no row; empty for any other name.

    >>> why_not("accelerator", "Groq LPU")[:16]
    'It keeps weights'
    """
    text = name.strip().lower().rsplit("/", 1)[-1]
    return next((why for of, sign, why in _SENTENCES if of == kind and sign.match(text)), "")
