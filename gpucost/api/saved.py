"""Saved answers: payloads as they read after they were saved."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gpucost.api.result import Result, flat

Answered = TypeVar("Answered", bound=Mapping[str, Any])


def reproduced(payload: Answered) -> Answered:
    """Return a payload as it reads after it was saved: numbers with the digits that JSON carries."""
    from gpucost.render.json import dumps

    read: Answered = json.loads(dumps(payload))
    return read


@dataclass(frozen=True, slots=True, repr=False)
class Listed(Result):
    """Any payload as a result; `listed` is the key of its main list."""

    listed: str = "rows"

    def _rows(self) -> list[dict[str, Any]]:
        return flat(self.payload.get(self.listed) or [])
