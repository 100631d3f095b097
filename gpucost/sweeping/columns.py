"""The columns of many answers: numbers and words, and the reason where there is no answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpucost.gate import beside

FIGURES = beside(__file__, "figures")[1:]  # of a question: its columns in order, and whether each is numbers or words


def columns_of(questions: Sequence[str], answers: Sequence[Mapping[str, Any]], of: Any) -> dict[str, Any]:
    """Return the figures of answers as columns, row i those of `answers[of[i]]`; other names are left out."""
    columns: dict[str, Any] = {}
    for question, name, kind in FIGURES:
        if question not in questions:
            continue
        values = [answer.get(name) for answer in answers]
        if kind != "word":
            columns[name] = np.array([np.nan if value is None else value for value in values], np.float64)[of]
            continue
        # words as codes into the sorted list of them: a chunk of cases repeats few
        categories = sorted({str(value) for value in values if value is not None})
        code_of = {category: code for code, category in enumerate(categories)}
        codes = [-1 if value is None else code_of[str(value)] for value in values]
        columns[name] = np.array(codes, np.int64)[of], categories
    return columns
