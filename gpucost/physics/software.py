"""Software as a covariate: which class of training stack a framework's name stands for, and how old it was.

Classes share host overheads, fusion and overlap. A name that is not known is "unknown": the mean of
a vendor's stack, sharded PyTorch and eager scripts, with a wider range. Only the framework counts, never the name of
a source or a row: the model is judged by those rows.
"""

import re
from datetime import date

from gpucost.gate import beside
from gpucost.words import CLASSES as CLASSES


def software_class(framework: str | None, compiled: bool | None = None) -> str:
    """Return the class of a framework's name, or "unknown".

    Plain PyTorch is "sharded" where the row says that it is compiled, and "eager" where it says that it is not.

    >>> software_class("Megatron-Bridge/NeMo 25.09"), software_class("Megatron-LM"), software_class(None)
    ('vendor', 'megatron', 'unknown')
    >>> software_class("plain PyTorch 2.11 eager", compiled=False)
    'eager'
    """
    text = (framework or "").lower()
    name_class = "unknown"
    # the first pattern that matches counts: NeMo, whose names may hold Megatron's as well, stands before it
    _, *patterns = beside(__file__, "frameworks")
    for pattern, pattern_class in patterns:
        if re.search(pattern, text):
            name_class = pattern_class
            break
    if compiled is None or name_class not in ("sharded", "eager"):
        return name_class
    return "sharded" if compiled else "eager"


def decimal_year(day: str | date | None, default: float) -> float:
    """Return a date such as 2024-07-31, 2024-07 or 2024 as a year with a fraction.

    >>> decimal_year("2024-07", 2026.0), decimal_year("", 2026.0)
    (2024.5, 2026.0)
    """
    match = re.match(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", str(day or ""))
    if match is None:
        return default
    # a missing month or day counts as the first; a leap day more or less changes no software's age
    year, month, day_of_month = (int(part) if part else 1 for part in match.groups())
    return year + (month - 1) / 12 + (day_of_month - 1) / 365
