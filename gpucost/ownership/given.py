"""What a plan says beside its inputs, read once by typed models: special names, supplies, lists by year, scenarios."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from gpucost.arguments import QUESTIONS
from gpucost.arguments.kinds import DATE, FILE, USD, name, plain, share, whole
from gpucost.options import OPTIONS
from gpucost.schemas.typed import held, read_as, record, several, text

if TYPE_CHECKING:
    from pydantic import BaseModel

LONGEST_LIST = 1200  # months of a century


@cache
def _supply() -> "type[BaseModel]":
    model: type[BaseModel] = record(
        "Supply",
        name=read_as(name().read),
        kind=(Literal[tuple(OPTIONS)], ...),
        usd_per_gpu_hour=(read_as(USD.read), ...),
        term_months=read_as(whole(0, 1200).read),
        max_gpus=read_as(plain(0, 1e9).read),
        max_share_fraction=read_as(share().read),
        unit_gpus=read_as(plain(1e-3, 1e6).read),
        lead_time_months=read_as(whole(0, 1200).read),
        upfront_fraction=read_as(share().read),
        stretch_ratio=read_as(plain(1, 1000).read),
        note=text(100_000),
        source_id=text(),
    )
    return model


@cache
def _plan() -> "type[BaseModel]":
    """Return the model of what stands beside the inputs, each as the argument of the same name, else as its kind."""
    arguments = [one for question in ("tco", "mix") for one in QUESTIONS[question].arguments]
    found = {
        called: read_as(one.kind.read) for one in arguments for called in (*one.old, one.name, one.field) if called
    }
    by_year = several(read_as(share().read), LONGEST_LIST, 1)
    tables = several(dict[str, Any], LONGEST_LIST)
    kinds = {
        **found,
        "refresh_year": read_as(plain(0, 100).read),
        "usd_per_unit": read_as(USD.read),
        "usd_per_unit_on": read_as(DATE.read),
        "currency_wacc_fraction": read_as(share().read),
        "fiscal_year_end_month": read_as(whole(1, 12).read),
        "start_on": read_as(DATE.read),
        "currency_curve": read_as(FILE.read),
        "rent_residual_correlation": read_as(share(1.0, -1.0).read),
        **dict.fromkeys(("residual_by_year", "residual_curve", "assessed_by_year", "depreciation_by_year"), by_year),
        "supply": several(_supply(), LONGEST_LIST),
        **dict.fromkeys(("rent_options", "parts"), tables),
        "scenarios": dict[str, dict[str, Any]],
    }
    model: type[BaseModel] = record("Plan", strange="allow", **kinds)
    return model


@cache
def _ranged() -> "type[BaseModel]":
    model: type[BaseModel] = record(
        "Input", value=(Any, ...), low=Any, high=Any, source=text(100_000), unit=text(), note=text(100_000)
    )
    return model


def special(key: str, value: Any, where: str) -> Any:
    """Read what a plan says under a special name."""
    return held(_plan(), {key: value}, where)[key]


def ranged(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read an input given as a table of value, low, high and source."""
    return held(_ranged(), entry, where)
