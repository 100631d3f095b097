"""What the page asks of one plan: to train, to serve, to own or rent, whether it fits; the address holds all of it."""

import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
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
from gpucost.units import HOURS_PER_YEAR, MONTHS_PER_YEAR, as_toml

if TYPE_CHECKING:
    from gpucost.ask.estimate import EstimateResult
    from gpucost.catalog import Catalog

Query = Mapping[str, str]

# What the address may hold: arguments of `estimate` by their own names, then those of the other tabs.
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
# Of serving the model: a field of the page -> the argument; the fields that both ask hold for both.
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
ROWS = 12  # offers of a table: what one screen shows beside the picture of all
# What rows of the tables hold, and points and regions of the pictures; the browser gets nothing else.
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
_POINT = ("days", "cost_usd", "orderable", "front", "gpus", "gpu", "provider", "region", "option", "age_days")
_SERVED_POINT = ("tpot_ms", "usd_per_mtok", *_POINT[2:])
_REGION = ("place", "region", "cost_usd", "days", "gpus", "gpu", "provider", "option", "offers", "orderable")
_SERVED_REGION = ("place", "region", "usd_per_mtok", "tpot_ms", *_REGION[4:])
_LAYOUT = ("tensor", "pipeline", "context", "expert", "sharding", "micro_batch", "recompute")
files: Path | None = None  # the folder whose files may be named
_MOST_CHARACTERS = 2000  # of all that is asked; what is longer was not typed
_ANSWERS_KEPT = 12  # of one plan its tabs, its files and its scenarios, and of a few plans before it
_SAVES_MEMORY_RATIO = 0.99  # a change that saves less is not worth a line


def catalog() -> "Catalog":
    """Return the catalog of today, with the books and refreshed prices as they are now."""
    from gpucost.catalog.shared import shared_catalog

    return shared_catalog()


def arguments_of(query: Query) -> dict[str, Any]:
    """Return the arguments of the estimate that an address asks for; unknown names are refused."""
    if sum(len(name) + len(value) for name, value in query.items()) > _MOST_CHARACTERS:
        raise UsageError(f"the address has more than {_MOST_CHARACTERS:,} characters. Shorten the input.")
    if unknown := [name for name in query if name not in (*FIELDS, *OWN_FIELDS, *SERVE_FIELDS, PRICE)]:
        raise UsageError(f"the page takes no {unknown[0][:40]!r}. It takes {', '.join(FIELDS)}.")
    return {name: query[name].strip() for name in FIELDS if query.get(name, "").strip()}


class _RecentAnswers:
    """The answers asked for last: the tabs of one plan, its files and its scenarios ask the same ones again."""

    def __init__(self, most: int) -> None:
        self._most, self._answers, self._lock = most, OrderedDict[tuple[Any, ...], Any](), Lock()

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer to a question, asked once."""
        if files is not None:  # a file that is named may change between two questions
            return _ask(name, arguments)
        # another catalog, of new prices, has other answers
        key = (name, id(catalog()), *sorted((field, str(value)) for field, value in arguments.items()))
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = _ask(name, arguments)  # unlocked: two may ask the same at once, and others need not wait
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return answer


def _ask(name: str, arguments: Mapping[str, Any]) -> Any:
    """Ask a question whose files lie in the folder that was named at the start."""
    from gpucost.ask.dispatch import answered, kinds_of_every_question

    with for_stranger(files, arguments):
        placed = only_under(QUESTIONS[name].arguments, arguments, files, kinds_of_every_question())
        return answered(name, placed, catalog())


_answered = _RecentAnswers(_ANSWERS_KEPT)


def estimate(query: Query) -> "EstimateResult":
    """Answer the training question of an address."""
    result: EstimateResult = _answered("estimate", {**arguments_of(query), "top": ROWS, "with_facts": False})
    return result


def plan(query: Query) -> dict[str, Any]:
    """Return what the page shows of a training question: headline, offers, picture, regions, sources, the command."""
    payload = estimate(query).payload
    rows = [{name: row[name] for name in _ROW} for row in payload["options"]]
    quoted = None
    if query.get(PRICE, "").strip():
        from gpucost.arguments.kinds import USD
        from gpucost.training.cases import recompute

        # the first offer at a price of one's own, hours and layout unchanged
        price, best = USD.read(query[PRICE], "your price"), payload["options"][0]
        changed = {"usd_per_gpu_hour": price, "price_low_ratio": 1.0, "price_high_ratio": 1.0}
        recomputed = recompute(best["factors"], **changed)
        quoted = {
            **{name: recomputed[name] for name in ("cost_usd", "cost_low_usd", "cost_high_usd", "days")},
            "usd_per_gpu_hour": price,
            "gpu": best["gpu"],
            "gpus": best["gpus"],
            "saving_usd": best["cost_usd"] - recomputed["cost_usd"],
        }
    used = {name for row in rows for name in row["source_ids"]}  # the page shows the sources of its rows alone
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
        "command": _command("estimate", arguments_of(query)),
    }


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its option as a label and its notes without commands."""
    texts: dict[str, Any] = {"option": labelled(row["option"])}
    if "notes" in row:
        texts["notes"] = [without_commands(note) for note in row["notes"]]
    return {**row, **texts}


def _columns(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return points as rows without their names, which a page of thousands of points need not repeat."""
    rows = [[labelled(point[name]) if name == "option" else point[name] for name in names] for point in points]
    return {"names": list(names), "rows": rows}


# Of what a source says where it lies: only https becomes a link, so that no script can.
_ADDRESS = re.compile(r"https://[^\s()<>]+[^\s()<>.,;]")
_REPOSITORY = re.compile(r"github:([\w.-]+/[\w.-]+)")


def _with_links(sources: Mapping[str, Mapping[str, Any]], used: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the sources that were used, each with the address where a reader finds it, if it has one."""
    return {
        name: {**source, "href": _address_of(str(source.get("locator") or ""))}
        for name, source in sources.items()
        if name in used
    }


def _address_of(locator: str) -> str | None:
    """Return the address that a locator holds.

    >>> _address_of("https://lambda.ai/pricing, seen by hand"), _address_of("github:a/b data/prices.json@05")
    ('https://lambda.ai/pricing', 'https://github.com/a/b')
    >>> _address_of("javascript:alert(1)"), _address_of("table 3")
    (None, None)
    """
    if address := _ADDRESS.search(locator):
        return address[0]
    repository = _REPOSITORY.match(locator)
    return f"https://github.com/{repository[1]}" if repository else None


def _by_place(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the first region of each country, in the order of the answer; what is sold in any region stands apart."""
    countries = {str(row["region"]): str(row["country"]) for row in catalog().rows("cloud_regions") if row["country"]}
    best: dict[str, dict[str, Any]] = {}
    for row in rows:
        place = "any region" if not row["region"] else countries.get(row["region"], row["region"])
        if place in best:
            best[place]["offers"] += row["offers"]
        else:
            best[place] = {**row, "place": place, "orderable": is_orderable(row)}
    return list(best.values())


def _on_map(rows: Sequence[Mapping[str, Any]], *figures: str) -> dict[str, Any]:
    """Return the offers of regions whose place on the earth is known, in their order, each with where it is."""
    place_of = {
        region: (float(latitude), float(longitude)) for region, latitude, longitude in beside(__file__, "places")[1:]
    }
    names = ("region", "latitude", "longitude", *figures, "gpus", "gpu", "provider", "option", "orderable")
    located = []
    for row in rows:
        if row["region"] in place_of:
            latitude, longitude = place_of[row["region"]]
            located.append({**row, "latitude": latitude, "longitude": longitude, "orderable": is_orderable(row)})
    return _columns(located, names)


def serve(query: Query) -> dict[str, Any]:
    """Return what the page shows of serving the model: offers, the picture of all, hosted prices, sources."""
    arguments_of({"tokens": "1b", **query})  # unknown names are refused alike
    stated = {name: query[name].strip() for name in _SHARED if query.get(name, "").strip()}
    stated |= {name: query[field].strip() for field, name in SERVE_FIELDS.items() if query.get(field, "").strip()}
    payload = _answered("inference", {**stated, "top": ROWS}).payload
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
        # prices of the model itself before those of others of its size
        "hosted": sorted(payload["api"], key=lambda row: (not row["same_model"], row["usd_per_mtok"]))[:6],
        "memory": payload["options"][0].get("memory"),
        "warnings": [without_commands(text) for text in payload["warnings"]],
        "sources": _with_links(payload["sources"], used),
        "as_of": payload["as_of"],
        "catalog_version": payload["catalog_version"],
        "command": _command("inference", stated),
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
        stated: dict[str, Any] = {name: query[name] for name in ("gpu", "gpus") if query.get(name, "").strip()}
    else:
        best = payload["options"][0]
        # the layout of the first offer, so that both tabs speak of one run
        layout = {name: best["layout"][name] for name in _LAYOUT}
        sequence = payload["workload"]["sequence_tokens"]
        stated = {"gpu": best["gpu"], "gpus": best["gpus"], **layout, "sequence": sequence}
    arguments = arguments_of(query)
    stated |= {name: arguments[name] for name in ("model", "method") if name in arguments}
    answer = _answered("fit", stated).payload
    # what makes the job fit; of one that fits, what needs less memory
    changes = []
    for row in answer["changes"]:
        needs_less = row["needed_gb"] is not None and row["needed_gb"] < _SAVES_MEMORY_RATIO * answer["needed_gb"]
        if needs_less if answer["fits"] else row["helps"]:
            changes.append(row)
    names = ("component", "needed_gb", "share_fraction", "formula", "numbers")
    return {
        **{name: answer[name] for name in ("lead", "fits", "gpu", "gpus", "needed_gb", "usable_gb", "layout")},
        "lead": without_commands(answer["lead"]),
        "model": answer["model"],
        "needed_low_gb": answer["needed_low_gb"],
        "needed_high_gb": answer["needed_high_gb"],
        "components": [{name: row[name] for name in names} for row in answer["components"]],
        "changes": changes[:6],
        "sizes": answer["sizes"],
        "warnings": [without_commands(text) for text in answer["warnings"]],
        "as_of": answer["as_of"],
        "command": _command("fit", stated),
    }


def own(query: Query) -> dict[str, Any]:
    """Return owning the machines of this plan's first offer against renting them, and how often the run must repeat.

    share = GPU-hours of the run ÷ (GPUs × hours of the years); runs = break-even share of hours ÷ share of one run.
    """
    arguments_of(query)  # unknown names are refused alike
    fields = {"gpu": query.get("own_gpu"), "gpus": query.get("own_gpus"), "rent": query.get(PRICE)}
    fields |= {name: query.get(name) for name in ("utilisation", "years")}
    stated: dict[str, Any] = {name: value.strip() for name, value in fields.items() if value and value.strip()}
    # without an accelerator of its own the comparison is of the plan's machines, at the price of its first offer
    offer = estimate(query).payload["options"][0] if "gpu" not in stated else None
    if offer is not None:
        stated = {"gpu": offer["gpu"], "gpus": offer["gpus"], "rent": round(offer["usd_per_gpu_hour"], 4), **stated}
    payload = _answered("tco", {**stated, "draws": 0}).payload  # no risk is shown, so none is drawn
    run = None
    if offer is not None:
        # how much of the machines' life one run is, and how many make owning as cheap as renting
        months = max(row["month"] for row in payload["cash_flows"])
        share = offer["gpu_hours"] / (offer["gpus"] * months / MONTHS_PER_YEAR * HOURS_PER_YEAR)
        even = payload["breakeven"]["utilisation_fraction"]
        run = {
            **{name: offer[name] for name in ("gpu", "gpus", "provider", "days", "cost_usd", "gpu_hours")},
            "years": months / MONTHS_PER_YEAR,
            "share_fraction": share,
            "runs": None if even is None else even / share,
        }
    rows: dict[float, dict[str, float]] = {}
    for point in payload["by_utilisation"]:
        rows.setdefault(point["utilisation_fraction"], {})[point["side"]] = point["usd_per_gpu_month"]
    return {
        "headline": without_commands(payload["lead"]),
        "run": run,
        "gpu": stated.get("gpu"),
        "gpus": int(payload["request"]["gpus"]) if payload["request"].get("gpus") else None,
        "breakeven": payload["breakeven"],
        "by_utilisation": [{"utilisation_fraction": share, **sides} for share, sides in sorted(rows.items())],
        "own_usd_per_gpu_hour": payload["levelised_usd_per_gpu_hour"],
        "rent_usd_per_gpu_hour": payload["levelised_rent_usd_per_gpu_hour"],
        "saving_usd": payload["npv_usd"]["saving"],
        "warnings": [without_commands(text) for text in payload["warnings"]],
        "command": _command("tco", stated),
    }


def _command(question: str, arguments: Mapping[str, Any]) -> str:
    from shlex import quote

    switches = {item.name for item in QUESTIONS[question].arguments if item.kind is FLAG}
    options = [
        flag_of(name) if name in switches else f"{flag_of(name)} {quote(str(value))}"
        for name, value in arguments.items()
    ]
    return f"gpucost {question} {' '.join(options)}"


# --- A refusal: the nearest question that has an answer.

_FREED = ("gpus", "deadline", "budget", "option", "region", "provider", "strict_prices", "gpu")  # the gentlest first
_SERVE_FREED = ("tpot", "tokens_per_month", "weights", "option", "region", "provider", "strict_prices", "gpu")
_CHANGES, _TRIES = 2, 6  # that a refusal shows, and that are asked to find them: each takes as long as an answer
_MENDED = (NothingFitsError, OverBudgetError, PriceMissingError, UnknownNameError, AmbiguousNameError)
_FIRST_LINE = ("headline", "run", "fits", "needed_gb", "usable_gb", "gpu", "gpus")  # what an answer's is made of


def nearest(error: GpuCostError, query: Query, tab: str = "plan") -> list[dict[str, Any]]:
    """Return the smallest changes of a refused question that have an answer, each with what that answer says.

    What the refusal itself advises comes first, then each wish left out in turn; every one of them was asked. An offer
    that can be ordered goes before a quote.
    """
    if not isinstance(error, _MENDED):
        return []
    ask = {"plan": plan, "serve": serve, "own": own, "fit": fit}[tab]
    changes: list[tuple[str, str]] = []
    if isinstance(error, (UnknownNameError, AmbiguousNameError)):
        # the names that may be meant, in the field that holds the one that is not
        fields = [field for field, value in query.items() if value.strip() == error.name]
        changes = [(fields[0], name) for name in error.candidates] if fields else []
    else:
        field_of = {argument: field for field, argument in SERVE_FIELDS.items()}
        advised = [(field_of.get(name, name), str(value)) for name, value in error.change.items()]
        changes = [(field, value) for field, value in advised if field in (*FIELDS, *SERVE_FIELDS)]
        # then each wish left out; without a deadline of its own a run has the usual one, so that is said to be none
        freed = _SERVE_FREED if tab == "serve" else _FREED
        changes += [(name, "none" if name == "deadline" else "") for name in freed if query.get(name, "").strip()]
    offered: list[dict[str, Any]] = []
    for field, value in list(dict.fromkeys(changes))[:_TRIES]:
        try:
            answer = ask({**query, field: value})
        except GpuCostError:
            continue
        rows = answer.get("rows", [])[:1]
        first_line = {key: answer[key] for key in _FIRST_LINE if key in answer} | {"rows": rows}
        headline = answer.get("headline") or answer["lead"]
        # that can be ordered, and that somebody listed lately
        orderable = all(is_orderable(row) and row["age_days"] <= FRESH_DAYS for row in rows)
        if value in ("", "none") and any(headline == change["headline"] for change in offered):
            continue  # the wish made no difference
        change = {"field": field, "value": value, "headline": headline, "orderable": orderable, "answer": first_line}
        offered.append(change)
        if sum(change["orderable"] for change in offered) == _CHANGES:
            break
    return sorted(offered, key=lambda change: not change["orderable"])[:_CHANGES]


def scenario(query: Query) -> str:
    """Return the question as a scenario file."""
    arguments = arguments_of(query)
    read(QUESTIONS["estimate"], **arguments)  # refused now, rather than by the report that is made of the file
    if "strict_prices" in arguments:  # a text, as the address has it; the file has a truth value
        arguments["strict_prices"] = FLAG.read(arguments["strict_prices"], "strict_prices")
    lines = ['name = "Planned on the page"', "", "[[training]]", 'name = "Training"']
    return "\n".join([*lines, *(f"{name} = {as_toml(value)}" for name, value in arguments.items())]) + "\n"


@lru_cache(maxsize=1)
def choices() -> dict[str, Any]:
    """Return what the fields of the page offer: names of the catalog, and the words of closed lists."""
    facts_now = catalog()
    closed = {item.name: item.kind.choices for item in QUESTIONS["estimate"].arguments if item.kind.choices}
    weights = {item.name: item.kind.choices for item in QUESTIONS["inference"].arguments}["precision"]
    sold = facts_now.offers(None, None, None, None)
    # the currencies that the page can show, each with the newest rate on or before its day
    codes = sorted({str(row["currency"]) for row in facts_now.rows("exchange_rates")} - {"USD"})
    rates = [rate for code in codes if (rate := newest_rate(facts_now, code)) is not None]
    return {
        "model": [row["id"] for row in facts_now.rows("llms")],
        "gpu": sorted({offer.gpu for offer in sold}),
        "provider": sorted({offer.provider for offer in sold}),
        "option": sorted({offer.option for offer in sold}),
        "region": sorted({str(row["name"]) for row in facts_now.rows("region_groups")}),
        **{name: list(closed[name]) for name in ("method", "software")},
        "weights": list(weights),
        "as_of": str(facts_now.as_of),
        "catalog_version": facts_now.version,
        "currencies": [
            {"code": rate["currency"], "usd": rate["usd_per_unit"], "on": str(rate["on"])} for rate in rates
        ],
        "optimize": [word for word in closed["optimize"] if word != "pareto"],  # a page has no list of options
    }


@lru_cache(maxsize=1)
def facts() -> dict[str, Any]:
    """Return what the pickers list: the models, and the GPUs that are sold, each with its cheapest fresh price."""
    from gpucost.catalog.models import model_rows

    facts_now = catalog()
    models = [{name: row[name] for name in _MODEL} for row in model_rows(facts_now, facts_now.architectures(None))]
    prices: dict[str, dict[str, Any]] = {}
    for offer in facts_now.offers(option="on_demand", max_age_days=FRESH_DAYS):  # the cheapest first
        prices.setdefault(offer.gpu, {name: getattr(offer, name) for name in _PRICE})
    chips = [row for row in facts_now.rows("accelerators") if row["id"] in choices()["gpu"]]
    none: dict[str, Any] = dict.fromkeys(_PRICE)  # of a chip whose prices are old, or none on demand
    gpus = [{**{name: row[name] for name in _CHIP}, **prices.get(str(row["id"]), none)} for row in chips]
    return {"models": models, "gpus": sorted(gpus, key=lambda row: (-(row["year"] or 0), row["id"]))}


_MODEL = ("id", "family", "parameters", "active_parameters", "layers", "max_sequence_tokens", "licence")
_CHIP = ("id", "name", "year", "memory_gib", "hbm_gb_per_s", "bf16_tflops")
_PRICE = ("usd_per_gpu_hour", "provider", "age_days")
