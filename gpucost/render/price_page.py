"""The page of prices: today's offers, a map of regions by price, and history with a slider; one file, no requests."""

import csv
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from gpucost.render.html import ROWS_SHOWN, _json, _templates
from gpucost.render.numbers import visible
from gpucost.store.files import write_text


def write_price_page(path: str, data: Mapping[str, Any], as_of: str, version: str) -> None:
    """Write the page; texts from outside are shown with their control characters visible."""
    offers = [[_plain(cell) for cell in row] for row in data["offers"]]
    shown = {
        **data,
        "offers": offers[:ROWS_SHOWN],
        "points": [[_plain(cell) for cell in point] for point in data["points"]],
        "places": _places(),
    }
    text = (
        _templates()
        .get_template("prices.html")
        .render(as_of=as_of, version=version, data=_json(shown), count=len(offers), cut=len(offers) > ROWS_SHOWN)
    )
    write_text(path, text)


def _plain(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not value.isprintable() else value


def _places() -> dict[str, list[float]]:
    text = files("gpucost.render").joinpath("assets", "places.csv").read_text("utf-8")
    return {
        row["region"]: [float(row["latitude"]), float(row["longitude"])] for row in csv.DictReader(text.splitlines())
    }
