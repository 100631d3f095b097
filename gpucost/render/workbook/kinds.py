"""Which live model an answer has: made here for training and serving, read from the payload for ownership."""

from collections.abc import Callable, Mapping
from typing import Any

from gpucost.render.workbook.live import LiveModel, from_block
from gpucost.render.workbook.serving import serving_model
from gpucost.render.workbook.training import training_model


def model_of(payload: Mapping[str, Any], title: str, number: int) -> LiveModel | None:
    """Return the live model of an answer, or None where nothing of it can be live; `number` keeps names apart."""
    kind = str(payload.get("kind"))
    maker = _MAKERS.get(kind)
    if maker is None:
        return None
    return maker(payload, f"{_PREFIX[kind]}{number or ''}", title)


def _ownership(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    if not payload.get("model"):
        return None
    shown = [row["name"] for row in payload["model"].get("answers") or ()]
    return from_block(payload, key, title, _first(shown, "npv_saving_usd"), shown, lower_is_better=False)


def _first(names: list[str], wanted: str) -> str:
    return wanted if wanted in names or not names else names[0]


_MAKERS: dict[str, Callable[[Mapping[str, Any], str, str], LiveModel | None]] = {
    "estimate": training_model,
    "inference": serving_model,
    "tco": _ownership,
}
_PREFIX = {"estimate": "train", "inference": "serve", "tco": "own"}
