"""Software as a covariate: which class of training stack a framework's name stands for, and how old it was.

Classes share host overheads, fusion and overlap. A name that is not known is "unknown": the mean of
a vendor's stack, sharded PyTorch and eager scripts, with a wider range. Names of sources or rows are never looked at.
"""

import re
from datetime import date

from gpucost.gate import beside
from gpucost.words import CLASSES as CLASSES


def software_class(framework: str | None, compiled: bool | None = None) -> str:
    """Return the class of a framework's name; what compiles plain PyTorch is sharded, what does not eager.

    >>> software_class("Megatron-Bridge/NeMo 25.09"), software_class("Megatron-LM"), software_class(None)
    ('vendor', 'megatron', 'unknown')
    >>> software_class("plain PyTorch 2.11 eager", compiled=False)
    'eager'
    """
    text = (framework or "").lower()
    # the first pattern that is met counts: NeMo, which names Megatron as well, comes before it
    name_class = next(
        (name for pattern, name in beside(__file__, "frameworks")[1:] if re.search(pattern, text)), "unknown"
    )
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
    # what is not stated counts as the first: a year as its January; days of 365ths, for nothing here turns on one
    year, month, of_month = (int(part) if part else 1 for part in match.groups())
    return year + (month - 1) / 12 + (of_month - 1) / 365
