"""Which live model an answer has."""

from collections.abc import Callable, Mapping
from typing import Any

from gpucost.render.workbook.live import LiveModel
from gpucost.render.workbook.ownership import ownership_model
from gpucost.render.workbook.serving import serving_model
from gpucost.render.workbook.training import training_model

# kind of answer -> prefix of its names in the workbook, and what makes its model
_MAKERS: dict[str, tuple[str, Callable[[Mapping[str, Any], str, str], LiveModel | None]]] = {
    "estimate": ("train", training_model),
    "inference": ("serve", serving_model),
    "tco": ("own", ownership_model),
}


def model_of(payload: Mapping[str, Any], title: str, number: int) -> LiveModel | None:
    """Return the live model of an answer, or None where nothing of it can be live; `number` keeps names apart."""
    prefix, maker = _MAKERS.get(str(payload.get("kind")), ("", None))
    return maker(payload, f"{prefix}{number or ''}", title) if maker else None
