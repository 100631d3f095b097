"""What the page asks: a training run with its curve, and owning against renting; the address holds all of it."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.arguments import flag_of, read
from gpucost.arguments.files import only_under
from gpucost.arguments.kinds import FLAG
from gpucost.ask import QUESTIONS
from gpucost.errors import UsageError

if TYPE_CHECKING:
    from gpucost.ask.estimate import EstimateResult
    from gpucost.catalog import Catalog

Query = Mapping[str, str]

FIELDS = (
    "model",
    "tokens",
    "deadline",
    "gpu",
    "gpus",
    "region",
    "provider",
    "option",
    "method",
    "software",
    "optimize",
    "mfu",
    "overhead",
    "budget",
    "strict_prices",
)
OWN_FIELDS = ("own_gpu", "own_gpus", "utilisation", "years")  # of the comparison with owning
PRICE = "own_price"  # USD per GPU-hour that the reader has been quoted
ROWS = 12
_ROW = (
    "rank",
    "provider",
    "instance_type",
    "region",
    "option",
    "term_months",
    "gpu",
    "gpus",
    "nodes",
    "days",
    "days_low",
    "days_high",
    "cost_usd",
    "cost_low_usd",
    "cost_high_usd",
    "usd_per_gpu_hour",
    "mfu_fraction",
    "age_days",
    "price_observed_on",
    "price_stale",
    "source_ids",
    "notes",
    "lines",
)
files: Path | None = None  # the folder whose files may be named
_MOST_SIGNS = 2000  # of all that is asked; what is longer was not typed


def catalog() -> "Catalog":
    """Return the catalog of today, with the books and refreshed prices as they are now."""
    from gpucost.catalog.shared import shared_catalog

    return shared_catalog()


def arguments_of(query: Query) -> dict[str, Any]:
    """Return the arguments of the estimate that an address asks for; unknown names are refused."""
    if sum(len(name) + len(value) for name, value in query.items()) > _MOST_SIGNS:
        raise UsageError(f"the address has more than {_MOST_SIGNS:,} characters. Shorten the input.")
    former = {old: item.name for item in QUESTIONS["estimate"].arguments for old in item.old if item.name in FIELDS}
    query = {former.get(name, name): value for name, value in query.items()}  # of an address that somebody kept
    if unknown := [name for name in query if name not in (*FIELDS, *OWN_FIELDS, PRICE)]:
        raise UsageError(f"the page takes no {unknown[0][:40]!r}. It takes {', '.join(FIELDS)}.")
    return _placed({name: query[name].strip() for name in FIELDS if query.get(name, "").strip()})


def _placed(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments whose files lie in the folder that was named at the start."""
    return only_under(given, files)


def estimate(query: Query) -> "EstimateResult":
    """Answer the training question of an address."""
    from gpucost.ask.dispatch import answer

    result: EstimateResult = answer("estimate", {**arguments_of(query), "top": ROWS, "with_facts": False}, catalog())
    return result


def plan(query: Query) -> dict[str, Any]:
    """Return what the page shows of a training question: headline, options, curve, sources, the command."""
    payload = estimate(query).payload
    rows = [{name: row[name] for name in _ROW} for row in payload["options"]]
    quoted = _quoted(query, payload["options"])
    used = {name for row in rows for name in row["source_ids"]}
    return {
        "headline": payload["headline"],
        "lead": payload["lead"],
        "rows": rows,
        "found": payload["options_found"],
        "quoted": quoted,
        "curve": [row for row in payload["scaling"] if row["cost_usd"] is not None],
        "ways": payload["alternatives"],
        "assumptions": payload["assumptions"],
        "warnings": payload["warnings"],
        "sources": {name: source for name, source in payload["sources"].items() if name in used},
        "as_of": payload["as_of"],
        "catalog_version": payload["catalog_version"],
        "command": command(query),
    }


def _quoted(query: Query, options: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the first option at a price of one's own, hours and layout unchanged."""
    if not query.get(PRICE, "").strip():
        return None
    from gpucost.arguments.kinds import USD
    from gpucost.training.cases import recompute

    price, best = USD.read(query[PRICE], "your price"), options[0]
    changed = {"usd_per_gpu_hour": price, "price_low_ratio": 1.0, "price_high_ratio": 1.0}
    recomputed = recompute(best["factors"], **changed)
    names = ("cost_usd", "cost_low_usd", "cost_high_usd", "days")
    return {
        **{name: recomputed[name] for name in names},
        "usd_per_gpu_hour": price,
        "gpu": best["gpu"],
        "gpus": best["gpus"],
        "saving_usd": best["cost_usd"] - recomputed["cost_usd"],
    }


def own(query: Query) -> dict[str, Any]:
    """Return owning the cluster of the first option against renting it, over the share of hours in use."""
    from gpucost.ask.dispatch import answer

    arguments_of(query)
    stated = {"gpu": query.get("own_gpu"), "gpus": query.get("own_gpus"), "rent": query.get(PRICE)}
    stated |= {name: query.get(name) for name in ("utilisation", "years")}
    named = _placed({name: value.strip() for name, value in stated.items() if value and value.strip()})
    payload = answer("tco", {**named, "draws": 0}, catalog()).payload
    rows: dict[float, dict[str, float]] = {}
    for point in payload["by_utilisation"]:
        rows.setdefault(point["utilisation_fraction"], {})[point["side"]] = point["usd_per_gpu_month"]
    return {
        "headline": payload["lead"],
        "breakeven": payload["breakeven"],
        "by_utilisation": [{"utilisation_fraction": share, **sides} for share, sides in sorted(rows.items())],
        "own_usd_per_gpu_hour": payload["levelised_usd_per_gpu_hour"],
        "rent_usd_per_gpu_hour": payload["levelised_rent_usd_per_gpu_hour"],
        "saving_usd": payload["npv_usd"]["saving"],
        "warnings": payload["warnings"],
        "command": "gpucost tco " + " ".join(f"{flag_of(name)} {_shell(value)}" for name, value in named.items()),
    }


def command(query: Query) -> str:
    """Return the command that asks the same."""
    arguments = arguments_of(query)
    flags = {item.name for item in QUESTIONS["estimate"].arguments if item.kind.json == ("boolean",)}
    options = [
        flag_of(name) if name in flags else f"{flag_of(name)} {_shell(value)}" for name, value in arguments.items()
    ]
    return "gpucost estimate " + " ".join(options)


def _shell(value: str) -> str:
    from shlex import quote

    return quote(value)


def scenario(query: Query) -> str:
    """Return the question as a scenario file."""
    arguments = arguments_of(query)
    read(QUESTIONS["estimate"], arguments)
    lines = ['name = "Planned on the page"', "", "[[training]]", 'name = "Training"']
    return "\n".join([*lines, *(f"{name} = {_toml(name, value)}" for name, value in arguments.items())]) + "\n"


def _toml(name: str, value: str) -> str:
    if name == "strict_prices":
        return str(FLAG.read(value, name)).lower()
    import json

    # a basic string of TOML is one of JSON, without the one control character that JSON takes
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@lru_cache(maxsize=1)
def choices() -> dict[str, Any]:
    """Return what the fields of the page offer: names of the catalog, and the words of closed lists."""
    held = catalog()
    closed = {item.name: item.kind.choices for item in QUESTIONS["estimate"].arguments if item.kind.choices}
    sold = held.offers(None, None, None, None)
    return {
        "model": [row["id"] for row in held.rows("llms")],
        "gpu": sorted({offer.gpu for offer in sold}),
        "provider": sorted({offer.provider for offer in sold}),
        "option": sorted({offer.option for offer in sold}),
        "region": sorted({str(row["name"]) for row in held.rows("region_groups")}),
        **{name: list(closed[name]) for name in ("method", "software")},
        "optimize": [word for word in closed["optimize"] if word != "pareto"],
    }
