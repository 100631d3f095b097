"""The seal of a saved answer: a hash of its content, by which a change after saving is known.

It tells of slips and of edits by hand. It is no signature: whoever changes a file can seal it anew.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any


def sealed(text: str) -> str:
    """Return the JSON of an answer with its seal as the last key.

    >>> sealed('{"kind": "fit", "gpus": 8}') == sealed('{"kind": "fit", "gpus": 8.0}').replace("8.0", "8")
    True
    >>> json.loads(sealed('{"kind": "fit"}'))["seal"] == seal_of({"kind": "fit"})
    True
    """
    return f'{text.rstrip().removesuffix("}").rstrip()},\n  "seal": "{_hash(text)}"\n}}'


def seal_of(payload: Mapping[str, Any]) -> str:
    """Return the seal that belongs to an answer as it was read, whatever the order of its keys and its spaces."""
    return _hash(json.dumps(payload))


def _hash(text: str) -> str:
    whole = json.loads(text, parse_int=_digits, parse_float=_digits)
    return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _digits(number: str) -> str:
    """Write a number as it is hashed: other programs write 1 for 1.0, and more digits."""
    return f"#{float(number):.12g}"
