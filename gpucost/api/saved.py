"""Saved answers: payloads as they read after they were saved."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

Answered = TypeVar("Answered", bound=Mapping[str, Any])


def reproduced(payload: Answered) -> Answered:
    """Return a payload as it reads after it was saved: numbers with the digits that JSON carries."""
    from gpucost.render.json import dumps

    read: Answered = json.loads(dumps(payload))
    return read
