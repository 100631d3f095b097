"""What the page asks of one plan: to train, to serve, to own or rent, whether it fits; the address holds all of it."""

import re
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from math import ceil
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from gpucost.arguments import flag_of, read
from gpucost.arguments.files import only_under
from gpucost.arguments.kinds import FLAG
from gpucost.ask import QUESTIONS
from gpucost.errors import GpuCostError, NothingFitsError, OverBudgetError, PriceMissingError, UsageError
from gpucost.render.wording import labelled, without_commands
from gpucost.units import HOURS_PER_YEAR

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
# of serving the model; the fields that both ask hold for both
SERVE_FIELDS = {
    "prompt_tokens": "prompt_tokens",
    "output_tokens": "output_tokens",
    "tokens_per_month": "tokens_per_month",
    "tpot": "tpot",
    "weights": "precision",
}
_SHARED = ("model", "gpu", "region", "provider", "option", "strict_prices")
PRICE = "own_price"  # USD per GPU-hour that the reader has been quoted
ROWS = 12
_OFFER = ("rank", "provider", "instance_type", "region", "option", "term_months", "gpu", "gpus")
_ROW = (
    *_OFFER,
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
    if unknown := [name for name in query if name not in (*FIELDS, *OWN_FIELDS, *SERVE_FIELDS, PRICE)]:
        raise UsageError(f"the page takes no {unknown[0][:40]!r}. It takes {', '.join(FIELDS)}.")
    return _placed({name: query[name].strip() for name in FIELDS if query.get(name, "").strip()})


def _placed(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments whose files lie in the folder that was named at the start."""
    return only_under(given, files)


class _Kept:
    """The answers asked for last: the tabs of one plan, its files and its scenarios ask the same ones again."""

    def __init__(self, most: int) -> None:
        self._most, self._answers, self._lock = most, OrderedDict[tuple[Any, ...], Any](), Lock()

    def __call__(self, name: str, asked: Mapping[str, Any]) -> Any:
        """Return the answer to a question, asked once."""
        from gpucost.ask.dispatch import answer

        if files is not None:  # a file that is named may change between two questions
            return answer(name, asked, catalog())
        key = (name, id(catalog()), *sorted((field, str(value)) for field, value in asked.items()))
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        made = answer(name, asked, catalog())
        with self._lock:
            self._answers[key] = made
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return made


_answered = _Kept(12)


def estimate(query: Query) -> "EstimateResult":
    """Answer the training question of an address."""
    result: EstimateResult = _answered("estimate", {**arguments_of(query), "top": ROWS, "with_facts": False})
    return result


def plan(query: Query) -> dict[str, Any]:
    """Return what the page shows of a training question: headline, offers, picture, regions, sources, the command."""
    payload = estimate(query).payload
    rows = [{name: row[name] for name in _ROW} for row in payload["options"]]
    quoted = _quoted(query, payload["options"])
    used = {name for row in rows for name in row["source_ids"]}
    return {
        "headline": payload["headline"],
        "lead": without_commands(payload["lead"]),
        "rows": [_in_words(row) for row in rows],
        "found": payload["options_found"],
        "points": _columns(payload["points"], _POINT),
        "regions": [_in_words({name: row[name] for name in _REGION}) for row in _by_place(payload["by_region"])],
        "places": _on_map(payload["by_region"], "cost_usd", "days"),
        "quoted": quoted,
        "curve": [row for row in payload["scaling"] if row["cost_usd"] is not None],
        "ways": payload["alternatives"],
        "drivers": payload["drivers"],
        "assumptions": payload["assumptions"],
        "warnings": [without_commands(text) for text in payload["warnings"]],
        "sources": _with_links(payload["sources"], used),
        "as_of": payload["as_of"],
        "catalog_version": payload["catalog_version"],
        "command": command(query),
    }


_POINT = ("days", "cost_usd", "orderable", "front", "gpus", "gpu", "provider", "region", "option", "age_days")
_SERVED_POINT = ("tpot_ms", "usd_per_mtok", *_POINT[2:])
_REGION = ("place", "region", "cost_usd", "days", "gpus", "gpu", "provider", "option", "offers", "orderable")
_SERVED_REGION = ("place", "region", "usd_per_mtok", "tpot_ms", *_REGION[4:])


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its option as a label and its notes without commands."""
    words: dict[str, Any] = {"option": labelled(row["option"])}
    if "notes" in row:
        words["notes"] = [without_commands(note) for note in row["notes"]]
    return {**row, **words}


def _columns(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return points as rows without their names, which a page of thousands of points need not repeat."""
    rows = [[labelled(point[name]) if name == "option" else point[name] for name in names] for point in points]
    return {"names": list(names), "rows": rows}


_ADDRESS = re.compile(r"https://[^\s()<>]+[^\s()<>.,;]")
_REPOSITORY = re.compile(r"github:([\w.-]+/[\w.-]+)")


def _with_links(sources: Mapping[str, Mapping[str, Any]], used: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the sources that were used, each with the address where a reader finds it, if it has one."""
    return {
        name: {**source, "href": address_of(str(source.get("locator") or ""))}
        for name, source in sources.items()
        if name in used
    }


def address_of(locator: str) -> str | None:
    """Return the address that a locator holds.

    >>> address_of("https://lambda.ai/pricing, seen by hand"), address_of("github:a/b data/prices.json@05")
    ('https://lambda.ai/pricing', 'https://github.com/a/b')
    >>> address_of("javascript:alert(1)"), address_of("table 3")
    (None, None)
    """
    if address := _ADDRESS.search(locator):
        return address[0]
    repository = _REPOSITORY.match(locator)
    return f"https://github.com/{repository[1]}" if repository else None


@lru_cache(maxsize=1)
def _countries() -> dict[str, str]:
    """Return the country of each region, by its code."""
    rows = catalog().rows("cloud_regions")
    return {str(row["region"]): str(row["country"]) for row in rows if row["country"]}


def _by_place(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cheapest region of each country, cheapest first; what is sold in any region stands apart."""
    best: dict[str, dict[str, Any]] = {}
    for row in rows:  # cheapest first, what one can order before the rest
        place = "any region" if not row["region"] else _countries().get(row["region"], row["region"])
        if place in best:
            best[place]["offers"] += row["offers"]
        else:
            best[place] = {**row, "place": place}
    return list(best.values())


def _on_map(rows: Sequence[Mapping[str, Any]], *figures: str) -> dict[str, Any]:
    """Return the offers of regions whose place on the earth is known, cheapest first, each with where it is."""
    from gpucost.render.html import places

    known = places()
    names = ("region", "latitude", "longitude", *figures, "gpus", "gpu", "provider", "option", "orderable")
    located = [
        {**row, "latitude": known[row["region"]][0], "longitude": known[row["region"]][1]}
        for row in rows
        if row["region"] in known
    ]
    return _columns(located, names)


def _cheapest_by_region(points: Sequence[Mapping[str, Any]], figure: str) -> list[dict[str, Any]]:
    """Return the cheapest point of each region, what one can order before the rest, with how many there are."""
    best: dict[str | None, dict[str, Any]] = {}
    for point in sorted(points, key=lambda point: (not point["orderable"], point[figure])):
        if point["region"] in best:
            best[point["region"]]["offers"] += 1
        else:
            best[point["region"]] = {**point, "offers": 1}
    return list(best.values())


def serve(query: Query) -> dict[str, Any]:
    """Return what the page shows of serving the model: offers, the picture of all, hosted prices, sources."""
    arguments_of({"tokens": "1b", **query})  # unknown names are refused alike
    shared = {name: query[name].strip() for name in _SHARED if query.get(name, "").strip()}
    load = {of: query[name].strip() for name, of in SERVE_FIELDS.items() if query.get(name, "").strip()}
    named = _placed({**shared, **load})
    payload = _answered("inference", {**named, "top": ROWS}).payload
    rows = [{name: row.get(name) for name in _SERVED} for row in payload["options"][:ROWS]]
    used = {name for row in rows for name in row["source_ids"]}
    by_region = _cheapest_by_region(payload["points"], "usd_per_mtok")
    return {
        "headline": without_commands(payload["lead"]),
        "regions": [_in_words({name: row[name] for name in _SERVED_REGION}) for row in _by_place(by_region)],
        "places": _on_map(by_region, "usd_per_mtok", "tpot_ms"),
        "said": [without_commands(text) for text in payload["said"]],
        "rows": [_in_words(row) for row in rows],
        "found": payload["offers_ranked"],
        "points": _columns(payload["points"], _SERVED_POINT),
        "hosted": sorted(payload["api"], key=lambda row: (not row["same_model"], row["usd_per_mtok"]))[:6],
        "memory": payload["options"][0].get("memory"),
        "warnings": [without_commands(text) for text in payload["warnings"]],
        "sources": _with_links(payload["sources"], used),
        "as_of": payload["as_of"],
        "catalog_version": payload["catalog_version"],
        "command": _command("inference", named),
    }


_SERVED = (
    *_OFFER,
    "replicas",
    "tpot_ms",
    "ttft_ms",
    "usd_per_mtok",
    "usd_per_mtok_low",
    "usd_per_mtok_high",
    "usd_per_month",
    "usd_per_gpu_hour",
    "age_days",
    "price_observed_on",
    "source_ids",
    "notes",
    "missing",
)


def fit(query: Query) -> dict[str, Any]:
    """Return where the memory goes on the machines of this plan, by component, and what would make it smaller.

    Where no offer can host the run, the accelerator and number that were asked for are judged instead.
    """
    try:
        payload = estimate(query).payload
    except NothingFitsError:
        if not query.get("gpu", "").strip():
            raise
        asked: dict[str, Any] = {name: query[name] for name in ("gpu", "gpus") if query.get(name, "").strip()}
    else:
        best = payload["options"][0]
        of_layout = {name: best["layout"][name] for name in _LAYOUT}
        asked = {"gpu": best["gpu"], "gpus": best["gpus"], **of_layout}
        asked["sequence"] = payload["workload"]["sequence_tokens"]
    arguments = arguments_of(query)
    asked |= {name: arguments[name] for name in ("model", "method") if name in arguments}
    found = _answered("fit", _placed(asked)).payload
    names = ("component", "needed_gb", "share_fraction", "formula", "numbers")
    return {
        **{name: found[name] for name in ("lead", "fits", "gpu", "gpus", "needed_gb", "usable_gb", "layout")},
        "lead": without_commands(found["lead"]),
        "needed_low_gb": found["needed_low_gb"],
        "needed_high_gb": found["needed_high_gb"],
        "components": [{name: row[name] for name in names} for row in found["components"]],
        "changes": [row for row in found["changes"] if _needs_less(row, found)][:6],
        "sizes": found["sizes"],
        "warnings": [without_commands(text) for text in found["warnings"]],
        "as_of": found["as_of"],
        "command": _command("fit", asked),
    }


def _needs_less(change: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Tell whether a change makes a job fit, or of one that fits, whether it needs less memory."""
    less: bool = change["needed_gb"] is not None and change["needed_gb"] < 0.99 * found["needed_gb"]
    return less if found["fits"] else bool(change["helps"])


_LAYOUT = ("tensor", "pipeline", "context", "expert", "sharding", "micro_batch", "recompute")


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
    """Return owning the machines of this plan's first offer against renting them, and how often the run must repeat."""
    arguments_of(query)
    stated = {"gpu": query.get("own_gpu"), "gpus": query.get("own_gpus"), "rent": query.get(PRICE)}
    stated |= {name: query.get(name) for name in ("utilisation", "years")}
    named = _placed({name: value.strip() for name, value in stated.items() if value and value.strip()})
    run = estimate(query).payload["options"][0] if "gpu" not in named else None
    if run is not None:
        named = {"gpu": run["gpu"], "gpus": run["gpus"], "rent": round(run["usd_per_gpu_hour"], 4), **named}
    payload = _answered("tco", {**named, "draws": 0}).payload
    rows: dict[float, dict[str, float]] = {}
    for point in payload["by_utilisation"]:
        rows.setdefault(point["utilisation_fraction"], {})[point["side"]] = point["usd_per_gpu_month"]
    lead, runs = without_commands(payload["lead"]), None if run is None else _runs(run, payload)
    return {
        "headline": lead if runs is None else _own_said(runs),
        "rest": "" if runs is None else f"Kept busy with other work as well: {lead}",
        "run": runs,
        "gpu": named.get("gpu"),
        "gpus": int(payload["request"]["gpus"]) if payload["request"].get("gpus") else None,
        "breakeven": payload["breakeven"],
        "by_utilisation": [{"utilisation_fraction": share, **sides} for share, sides in sorted(rows.items())],
        "own_usd_per_gpu_hour": payload["levelised_usd_per_gpu_hour"],
        "rent_usd_per_gpu_hour": payload["levelised_rent_usd_per_gpu_hour"],
        "saving_usd": payload["npv_usd"]["saving"],
        "warnings": [without_commands(text) for text in payload["warnings"]],
        "command": _command("tco", named),
    }


def _runs(run: Mapping[str, Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    """Say how much of the machines' life one run is, and how many of them make owning as cheap as renting.

    share = GPU-hours of the run ÷ (GPUs × hours of the years); runs = break-even share of hours ÷ share of one run.
    """
    months = max(row["month"] for row in payload["cash_flows"])
    hours = run["gpus"] * months / 12 * HOURS_PER_YEAR
    share, even = run["gpu_hours"] / hours, payload["breakeven"]["utilisation_fraction"]
    names = ("gpu", "gpus", "provider", "days", "cost_usd", "gpu_hours")
    return {
        **{name: run[name] for name in names},
        "years": months / 12,
        "share_fraction": share,
        "runs": None if even is None else even / share,
    }


def _own_said(runs: Mapping[str, Any]) -> str:
    """Say what owning the machines of one run means for that run.

    >>> run = {"gpu": "h100", "gpus": 8, "days": 10.0, "cost_usd": 5000.0, "share_fraction": 0.007, "years": 4.0}
    >>> _own_said({**run, "provider": "lambda", "runs": 61.2}).partition(": ")[2]
    'owning them pays from 62 such runs on; for this run alone, rent.'
    """
    cluster = f"{runs['gpus']:,} × {runs['gpu']}"
    busy = (
        f"This run keeps {cluster} busy for {runs['days']:,.3g} days, {100 * runs['share_fraction']:.2g} % of"
        f" {runs['years']:g} years, and costs {runs['cost_usd']:,.0f} USD rented at {runs['provider']}"
    )
    if runs["runs"] is None:
        return f"{busy}: owning them is never as cheap."
    if runs["runs"] <= 1:
        return f"{busy}: owning them pays with this run alone."
    return f"{busy}: owning them pays from {ceil(runs['runs']):,} such runs on; for this run alone, rent."


def command(query: Query) -> str:
    """Return the command that asks the same."""
    return _command("estimate", arguments_of(query))


def _command(question: str, arguments: Mapping[str, Any]) -> str:
    flags = {item.name for item in QUESTIONS[question].arguments if item.kind.json == ("boolean",)}
    options = [
        flag_of(name) if name in flags else f"{flag_of(name)} {_shell(str(value))}" for name, value in arguments.items()
    ]
    return f"gpucost {question} {' '.join(options)}"


# --- A refusal: the nearest question that has an answer.

_FREED = ("gpus", "deadline", "budget", "option", "region", "provider", "strict_prices", "gpu")  # the gentlest first
_SERVE_FREED = ("tpot", "tokens_per_month", "weights", "option", "region", "provider", "strict_prices", "gpu")
_CHANGES, _TRIES = 2, 6


def nearest(error: GpuCostError, query: Query, tab: str = "plan") -> list[dict[str, Any]]:
    """Return the smallest changes of a refused question that have an answer, each with that answer's headline.

    What the refusal itself advises comes first, then each wish left out in turn; every one of them was asked.
    """
    if not isinstance(error, (NothingFitsError, OverBudgetError, PriceMissingError)):
        return []
    ask = {"plan": plan, "serve": serve, "own": own, "fit": fit}[tab]
    offered: list[dict[str, Any]] = []
    for change in list(dict.fromkeys(_changes(error, query, _SERVE_FREED if tab == "serve" else _FREED)))[:_TRIES]:
        name, value = change
        try:
            answer = ask({**query, name: value})
        except GpuCostError:
            continue
        offered.append({"field": name, "value": value, "headline": answer.get("headline") or answer["lead"]})
        if len(offered) == _CHANGES:
            break
    return offered


def _changes(error: GpuCostError, query: Query, freed: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from ((name, str(value)) for name, value in error.change.items() if name in (*FIELDS, *SERVE_FIELDS))
    yield from ((name, "none" if name == "deadline" else "") for name in freed if query.get(name, "").strip())


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
        "weights": next(
            list(item.kind.choices) for item in QUESTIONS["inference"].arguments if item.name == "precision"
        ),
        "as_of": str(held.as_of),
        "catalog_version": held.version,
        "optimize": [word for word in closed["optimize"] if word != "pareto"],
    }
