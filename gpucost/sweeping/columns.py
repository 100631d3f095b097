"""The columns of many answers: numbers and words, and the reason where there is no answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpucost.gate import beside

FIGURES = beside(__file__, "figures")[1:]  # of a question: its columns in order, and whether each is numbers or words


def columns_of(questions: Sequence[str], answers: Sequence[Mapping[str, Any]], of: Any) -> dict[str, Any]:
    """Return the figures of answers as columns, row i those of `answers[of[i]]`; other names are left out."""
    columns: dict[str, Any] = {}
    for name, kind in ((name, kind) for asked, name, kind in FIGURES if asked in questions):
        values = [answer.get(name) for answer in answers]
        if kind != "word":
            columns[name] = np.array([np.nan if value is None else value for value in values], np.float64)[of]
            continue
        words = sorted({str(value) for value in values if value is not None})
        code_of: dict[str | None, int] = {word: code for code, word in enumerate(words)}
        codes = [-1 if value is None else code_of[str(value)] for value in values]
        columns[name] = np.array(codes, np.int64)[of], words
    return columns
