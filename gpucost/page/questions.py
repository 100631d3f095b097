"""What the page asks of one plan: to train, to serve, to own or rent, whether it fits; the address holds all of it."""

import re
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from gpucost.arguments import flag_of, read
from gpucost.arguments.files import for_stranger, only_under
from gpucost.arguments.kinds import FLAG
from gpucost.ask import QUESTIONS
from gpucost.errors import (
    AmbiguousNameError,
    GpuCostError,
    NothingFitsError,
    OverBudgetError,
    PriceMissingError,
    UnknownNameError,
    UsageError,
)
from gpucost.gate import beside
from gpucost.market.budget import FRESH_DAYS
from gpucost.market.exchange import newest_rate
from gpucost.render.offers import is_orderable, ways
from gpucost.render.wording import labelled, without_commands
from gpucost.units import HOURS_PER_YEAR, as_toml

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
    **{name: name for name in ("users", "think_time", "slo_ttft", "slo_tpot", "percentile")},
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
    "budget_usd",
    "chance_available_fraction",
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
    if unknown := [name for name in query if name not in (*FIELDS, *OWN_FIELDS, *SERVE_FIELDS, PRICE)]:
        raise UsageError(f"the page takes no {unknown[0][:40]!r}. It takes {', '.join(FIELDS)}.")
    return {name: query[name].strip() for name in FIELDS if query.get(name, "").strip()}


class _Kept:
    """The answers asked for last: the tabs of one plan, its files and its scenarios ask the same ones again."""

    def __init__(self, most: int) -> None:
        self._most, self._answers, self._lock = most, OrderedDict[tuple[Any, ...], Any](), Lock()

    def __call__(self, name: str, asked: Mapping[str, Any]) -> Any:
        """Return the answer to a question, asked once."""
        if files is not None:  # a file that is named may change between two questions
            return _ask(name, asked)
        key = (name, id(catalog()), *sorted((field, str(value)) for field, value in asked.items()))
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        made = _ask(name, asked)
        with self._lock:
            self._answers[key] = made
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return made


def _ask(name: str, asked: Mapping[str, Any]) -> Any:
    """Ask a question whose files lie in the folder that was named at the start."""
    from gpucost.ask.dispatch import answered, kinds_of_every_question

    with for_stranger(files, asked):
        placed = only_under(QUESTIONS[name].arguments, asked, files, kinds_of_every_question())
        return answered(name, placed, catalog())


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
        "model": payload["workload"]["model"],
        "points": _columns(ways(payload), _POINT),
        "regions": [_in_words({name: row[name] for name in _REGION}) for row in _by_place(payload["regions"])],
        "places": _on_map(payload["regions"], "cost_usd", "days"),
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
    """Return the first region of each country, in the order of the answer; what is sold in any region stands apart."""
    best: dict[str, dict[str, Any]] = {}
    for row in rows:
        place = "any region" if not row["region"] else _countries().get(row["region"], row["region"])
        if place in best:
            best[place]["offers"] += row["offers"]
        else:
            best[place] = {**row, "place": place, "orderable": is_orderable(row)}
    return list(best.values())


def _on_map(rows: Sequence[Mapping[str, Any]], *figures: str) -> dict[str, Any]:
    """Return the offers of regions whose place on the earth is known, in their order, each with where it is."""
    known = {
        region: (float(latitude), float(longitude)) for region, latitude, longitude in beside(__file__, "places")[1:]
    }
    names = ("region", "latitude", "longitude", *figures, "gpus", "gpu", "provider", "option", "orderable")
    located = [
        {
            **row,
            "latitude": known[row["region"]][0],
            "longitude": known[row["region"]][1],
            "orderable": is_orderable(row),
        }
        for row in rows
        if row["region"] in known
    ]
    return _columns(located, names)


def serve(query: Query) -> dict[str, Any]:
    """Return what the page shows of serving the model: offers, the picture of all, hosted prices, sources."""
    arguments_of({"tokens": "1b", **query})  # unknown names are refused alike
    shared = {name: query[name].strip() for name in _SHARED if query.get(name, "").strip()}
    load = {of: query[name].strip() for name, of in SERVE_FIELDS.items() if query.get(name, "").strip()}
    named = {**shared, **load}
    payload = _answered("inference", {**named, "top": ROWS}).payload
    rows = [{name: row.get(name) for name in _SERVED} for row in payload["options"][:ROWS]]
    used = {name for row in rows for name in row["source_ids"]}
    return {
        "headline": without_commands(payload["lead"]),
        "regions": [_in_words({name: row[name] for name in _SERVED_REGION}) for row in _by_place(payload["regions"])],
        "places": _on_map(payload["regions"], "usd_per_mtok", "tpot_ms"),
        "said": [without_commands(text) for text in payload["said"]],
        "rows": [_in_words(row) for row in rows],
        "found": payload["offers_ranked"],
        "points": _columns(ways(payload), _SERVED_POINT),
        "levels": payload.get("levels", []),
        "knee": payload.get("knee", []),
        "percentile": payload["request"]["percentile"],
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
    "budget_usd",
    "chance_available_fraction",
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
    found = _answered("fit", asked).payload
    names = ("component", "needed_gb", "share_fraction", "formula", "numbers")
    return {
        **{name: found[name] for name in ("lead", "fits", "gpu", "gpus", "needed_gb", "usable_gb", "layout")},
        "lead": without_commands(found["lead"]),
        "model": found["model"],
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
    named = {name: value.strip() for name, value in stated.items() if value and value.strip()}
    run = estimate(query).payload["options"][0] if "gpu" not in named else None
    if run is not None:
        named = {"gpu": run["gpu"], "gpus": run["gpus"], "rent": round(run["usd_per_gpu_hour"], 4), **named}
    payload = _answered("tco", {**named, "draws": 0}).payload
    rows: dict[float, dict[str, float]] = {}
    for point in payload["by_utilisation"]:
        rows.setdefault(point["utilisation_fraction"], {})[point["side"]] = point["usd_per_gpu_month"]
    return {
        "headline": without_commands(payload["lead"]),
        "run": None if run is None else _runs(run, payload),
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
_MENDED = (NothingFitsError, OverBudgetError, PriceMissingError, UnknownNameError, AmbiguousNameError)
_SAID = (
    "headline",
    "run",
    "fits",
    "needed_gb",
    "usable_gb",
    "gpu",
    "gpus",
)  # what the first line of an answer is made of


def nearest(error: GpuCostError, query: Query, tab: str = "plan") -> list[dict[str, Any]]:
    """Return the smallest changes of a refused question that have an answer, each with what that answer says.

    What the refusal itself advises comes first, then each wish left out in turn; every one of them was asked. An offer
    that can be ordered goes before a quote.
    """
    if not isinstance(error, _MENDED):
        return []
    ask = {"plan": plan, "serve": serve, "own": own, "fit": fit}[tab]
    offered: list[dict[str, Any]] = []
    for change in list(dict.fromkeys(_changes(error, query, _SERVE_FREED if tab == "serve" else _FREED)))[:_TRIES]:
        name, value = change
        try:
            answer = ask({**query, name: value})
        except GpuCostError:
            continue
        said = {key: answer[key] for key in _SAID if key in answer} | {"rows": answer.get("rows", [])[:1]}
        headline, orderable = answer.get("headline") or answer["lead"], all(map(_is_listed, said["rows"]))
        if value in ("", "none") and any(headline == change["headline"] for change in offered):
            continue  # the wish made no difference
        offered.append({"field": name, "value": value, "headline": headline, "orderable": orderable, "answer": said})
        if sum(change["orderable"] for change in offered) == _CHANGES:
            break
    return sorted(offered, key=lambda change: not change["orderable"])[:_CHANGES]


def _is_listed(row: Mapping[str, Any]) -> bool:
    """Tell whether the offer of a row can be ordered, and somebody listed it lately."""
    return is_orderable(row) and row["age_days"] <= FRESH_DAYS


def _changes(error: GpuCostError, query: Query, freed: Sequence[str]) -> Iterator[tuple[str, str]]:
    if isinstance(error, (UnknownNameError, AmbiguousNameError)):
        field = next((name for name, value in query.items() if value.strip() == error.name), None)
        yield from ((field, name) for name in error.candidates if field)
        return
    of_argument = {argument: field for field, argument in SERVE_FIELDS.items()}
    advised = ((of_argument.get(name, name), str(value)) for name, value in error.change.items())
    yield from ((name, value) for name, value in advised if name in (*FIELDS, *SERVE_FIELDS))
    yield from ((name, "none" if name == "deadline" else "") for name in freed if query.get(name, "").strip())


def _shell(value: str) -> str:
    from shlex import quote

    return quote(value)


def scenario(query: Query) -> str:
    """Return the question as a scenario file."""
    arguments = arguments_of(query)
    read(QUESTIONS["estimate"], **arguments)
    if "strict_prices" in arguments:
        arguments["strict_prices"] = FLAG.read(arguments["strict_prices"], "strict_prices")
    lines = ['name = "Planned on the page"', "", "[[training]]", 'name = "Training"']
    return "\n".join([*lines, *(f"{name} = {as_toml(value)}" for name, value in arguments.items())]) + "\n"


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
        "currencies": _currencies(),
        "optimize": [word for word in closed["optimize"] if word != "pareto"],
    }


@lru_cache(maxsize=1)
def facts() -> dict[str, Any]:
    """Return what the pickers list: the models, and the GPUs that are sold, each with its cheapest fresh price."""
    from gpucost.catalog.models import model_rows

    held = catalog()
    models = [{name: row[name] for name in _MODEL} for row in model_rows(held, held.architectures(None))]
    prices: dict[str, dict[str, Any]] = {}
    for offer in held.offers(option="on_demand", max_age_days=FRESH_DAYS):  # the cheapest first
        prices.setdefault(offer.gpu, {name: getattr(offer, name) for name in _PRICE})
    chips = [row for row in held.rows("accelerators") if row["id"] in choices()["gpu"]]
    none: dict[str, Any] = dict.fromkeys(_PRICE)
    gpus = [{**{name: row[name] for name in _CHIP}, **prices.get(str(row["id"]), none)} for row in chips]
    return {"models": models, "gpus": sorted(gpus, key=lambda row: (-(row["year"] or 0), row["id"]))}


_MODEL = ("id", "family", "parameters", "active_parameters", "layers", "max_sequence_tokens", "licence")
_CHIP = ("id", "name", "year", "memory_gib", "hbm_gb_per_s", "bf16_tflops")
_PRICE = ("usd_per_gpu_hour", "provider", "age_days")


def _currencies() -> list[dict[str, Any]]:
    """Return the currencies that the page can show, each with the newest rate on or before its day."""
    held = catalog()
    named = sorted({str(row["currency"]) for row in held.rows("exchange_rates")} - {"USD"})
    rates = [rate for currency in named if (rate := newest_rate(held, currency)) is not None]
    return [{"code": rate["currency"], "usd": rate["usd_per_unit"], "on": str(rate["on"])} for rate in rates]
