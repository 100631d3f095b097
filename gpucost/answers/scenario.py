"""The answers of a scenario file, one after the other."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from gpucost.answers.common import Answer


class ScenarioPart(TypedDict):
    """One part and its answer, which says by its `kind` what it is."""

    name: str
    part: str  # training, serving, ownership or mix
    payload: Mapping[str, Any]


class Scenario(Answer):
    """The answers of a scenario."""

    kind: Literal["scenario"]
    name: str
    description: str
    parts: list[ScenarioPart]
