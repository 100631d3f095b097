"""The columns of many answers as they are filled: numbers and words, and the reason where there is no answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpucost.gate import beside

FIGURES = beside(__file__, "figures")[1:]  # of a question: its columns in order, and whether each is numbers or words


class FilledWords:
    """A column of words as it is filled: a code for each row, −1 where nothing was said."""

    def __init__(self, count: int) -> None:
        self._codes = np.full(count, -1, np.int64)
        self._code_of: dict[str, int] = {}

    def put(self, rows: Any, words: Sequence[Any], of: Any) -> None:
        """Put words into rows, row i the one at `of[i]`; None is no word."""
        codes = [-1 if word is None else self._code_of.setdefault(str(word), len(self._code_of)) for word in words]
        self._codes[rows] = np.array(codes, np.int64)[of]

    def column(self) -> tuple[Any, list[str]]:
        """Return the codes, and what they mean in the order of the alphabet."""
        categories = sorted(self._code_of)
        place = np.full(len(categories) + 1, -1, np.int64)  # the last is that of no word
        place[[self._code_of[word] for word in categories]] = np.arange(len(categories))
        return place[self._codes], categories


class FilledColumns:
    """The columns of many answers as they are filled: figures, and the reason where there are none."""

    def __init__(self, question: str, count: int) -> None:
        kinds = {name: kind for of, name, kind in FIGURES if of == question}
        kinds |= {"reason": "word", "nearest_change": "word"}
        self.count = count
        self.filled: dict[str, Any] = {
            name: FilledWords(count) if kind == "word" else np.full(count, np.nan) for name, kind in kinds.items()
        }

    def put(self, rows: Any, answers: Sequence[Mapping[str, Any]], of: Any) -> None:
        """Put the figures of answers into rows, row i those at `of[i]`; figures of other names are left out."""
        for name, column in self.filled.items():
            if answers and name in answers[0]:
                values = [answer[name] for answer in answers]
                if isinstance(column, FilledWords):
                    column.put(rows, values, of)
                else:
                    column[rows] = numbers(values)[of]

    def put_columns(self, rows: Any, figures: Mapping[str, Any]) -> None:
        """Put columns of numbers into rows."""
        for name, column in figures.items():
            self.filled[name][rows] = column

    def put_words(self, name: str, rows: Any, words: Sequence[str], of: Any) -> None:
        """Put words into a column, row i the one at `of[i]`."""
        self.filled[name].put(rows, words, of)

    def put_row(self, row: int, answer: Mapping[str, Any]) -> None:
        """Put one row as a single answer gives it."""
        self.put([row], [answer], [0])

    def columns(self) -> dict[str, Any]:
        """Return the columns."""
        filled = self.filled.items()
        return {name: column.column() if isinstance(column, FilledWords) else column for name, column in filled}


def numbers(column: Sequence[Any]) -> Any:
    """Return numbers; None is NaN."""
    return np.array([np.nan if value is None else value for value in column], np.float64)
