"""Questions that are asked case by case: the figures of each answer that a row of a sweep holds."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpucost.api.asking import answered
from gpucost.errors import GpuCostError
from gpucost.gate import beside

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

_FIGURES = beside(__file__, "figures")[1:]


def _served(payload: Mapping[str, Any]) -> dict[str, Any]:
    return dict(payload["options"][0])


def _owned(payload: Mapping[str, Any]) -> dict[str, Any]:
    worth, even = payload["npv_usd"], payload["breakeven"]
    return {
        **payload,
        "cheaper": "own" if worth["saving"] > 0 else "rent",
        "own_npv_usd": worth["own"],
        "rent_npv_usd": worth["rent"],
        "saving_usd": worth["saving"],
        **{f"breakeven_{name}": even[name] for name in ("utilisation_fraction", "usd_per_gpu_hour", "months")},
    }


_FLAT = {"inference": _served, "tco": _owned}


class Singles:
    """Answers columns of requests one by one from one catalog; equal requests once."""

    def __init__(self, question: str, catalog: "Catalog") -> None:
        self.question, self.catalog = question, catalog

    def rows(self, values: Mapping[str, Sequence[Any]], codes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of the answer; argument `name` of row i is `values[name][codes[name][i]]`."""
        count = len(next(iter(codes.values()), (0,)))  # without arguments one question, which says what it lacks
        found: list[dict[str, Any]] = []
        for row in range(count):
            asked = {name: values[name][codes[name][row]] for name in values}
            found.append(self._one({name: value for name, value in asked.items() if value is not None}))
        columns: dict[str, Any] = {}
        for _, name, kind in (row for row in _FIGURES if row[0] == self.question):
            column = [one.get(name) for one in found]
            columns[name] = _words(column) if kind == "word" else _numbers(column)
        return {**columns, "reason": _words([one.get("reason") for one in found])}

    def _one(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        try:
            extra = {"draws": 0} if self.question == "tco" else {"top": 1}
            payload = answered(self.question, {**asked, **extra}, self.catalog)[0].payload
        except GpuCostError as error:
            return {"reason": " ".join(str(error).split())}
        return _FLAT[self.question](payload)


def _numbers(column: Sequence[Any]) -> Any:
    return np.array([np.nan if value is None else value for value in column], np.float64)


def _words(column: Sequence[Any]) -> tuple[Any, list[str]]:
    """Return words as codes and what they mean; None is no word."""
    known = sorted({str(word) for word in column if word is not None})
    place = {word: code for code, word in enumerate(known)}
    return np.array([-1 if word is None else place[str(word)] for word in column], np.int64), known
