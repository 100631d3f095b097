"""Two answers compared: what changed, and what each cause does to the figure that both have, in effects that add up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from gpucost.answers import SCHEMA_VERSION
from gpucost.answers.combined import Change, Comparison, Differs, RequestChange, ScenarioAnswer, ScenarioPart, Side
from gpucost.errors import UsageError
from gpucost.formula.arrays import Columns
from gpucost.money.training_bill import INPUT_NAMES, price_runs
from gpucost.units import SECONDS_PER_HOUR, suffix_of, unit_of

# --- Effects that add up: causes change one after the other, or parts stand side by side; the last digit is kept.

Values = Mapping[str, Any]
_EVERY_DIGIT = Context(prec=400)  # of any double, to the last that is told
REMAINDER = "the rest"  # what the factors leave: rounding, and what another version computed otherwise


class Cause(NamedTuple):
    """Factors that change together: what a reader calls them, and the one whose values are shown."""

    name: str
    shown: str
    factors: tuple[str, ...]


def in_turn(
    before: Values,
    after: Values,
    causes: Iterable[Cause],
    figure: Callable[[Values], float],
    ends: tuple[float, float],
    digits: int = 2,
) -> list[Change]:
    """Change one cause after the other, in their order, and return what each does to the figure.

    effectᵢ = figure after causes 1 … i − figure after causes 1 … i−1. Each figure is rounded first, so that the effects
    add up to the difference of `ends` to the last digit; what the figure cannot explain of it stands as the rest. A
    cause that alone leaves no figure waits until others have changed.

    >>> cost = lambda run: run["hours"] * run["price"]
    >>> causes = [Cause("time", "hours", ("hours",)), Cause("price", "price", ("price",))]
    >>> rows = in_turn({"hours": 10, "price": 2}, {"hours": 8, "price": 3}, causes, cost, (20, 24))
    >>> [(row["factor"], row["effect"]) for row in rows]
    [('time', -4.0), ('price', 8.0)]
    """
    rows: list[Change] = []
    waiting: list[Cause] = []
    current = dict(before)
    start = last = _rounded(figure(current), digits)

    def changed_factors(cause: Cause) -> list[str]:
        return [name for name in cause.factors if current.get(name) != after.get(name)]

    def change_factors(cause: Cause, names: Sequence[str]) -> bool:
        """Change the factors and write down what that does; False, and nothing changed, where it leaves no figure."""
        nonlocal current, last
        changed = current | {name: after.get(name) for name in names}
        value = figure(changed)
        if not isfinite(value):
            return False
        now = _rounded(value, digits)
        column = cause.shown if cause.shown in names else names[0]
        rows.append(_change(cause.name, column, before.get(column), after.get(column), now - last))
        current, last = changed, now
        return True

    for cause in causes:
        names = changed_factors(cause)
        if not names:
            continue
        if not change_factors(cause, names):  # a price by another rule waits for what the rule reads
            waiting.append(cause)
            continue
        # Each change may have brought what one that waits was lacking, and that one what another lacks.
        progress = True
        while progress:
            progress = False
            for other in waiting:
                if change_factors(other, changed_factors(other)):
                    waiting.remove(other)
                    progress = True
                    break
    # What never became possible alone is one change, under the first of its names.
    if waiting and not change_factors(waiting[0], [name for cause in waiting for name in changed_factors(cause)]):
        raise ArithmeticError("no finite figure")
    return [*rows, *_remainder(ends, last - start, digits)]


def side_by_side(before: Values, after: Values, ends: tuple[float, float], digits: int = 2) -> list[Change]:
    """Return what each part of a sum adds to the difference; a part that only one side has counts from nothing.

    >>> rows = side_by_side({"a": 1.0, "b": 2.0}, {"a": 1.5, "c": 1.0}, (3.0, 2.5))
    >>> [(row["factor"], row["effect"]) for row in rows]
    [('a', 0.5), ('b', -2.0), ('c', 1.0)]
    """
    rows: list[Change] = []
    explained = Decimal(0)
    for name in dict.fromkeys([*before, *after]):
        effect = _rounded(after.get(name) or 0.0, digits) - _rounded(before.get(name) or 0.0, digits)
        explained += effect
        if effect:
            rows.append(_change(name, name, before.get(name), after.get(name), effect))
    return [*rows, *_remainder(ends, explained, digits)]


def difference(ends: tuple[float, float], digits: int = 2) -> float:
    """Return the difference of two figures as the effects add up to it."""
    return float(_rounded(ends[1], digits) - _rounded(ends[0], digits))


def _change(factor: str, name: str, before: Any, after: Any, effect: Decimal, note: str = "") -> Change:
    """Return one effect."""
    return {
        "factor": factor,
        "name": name,
        "before": before,
        "after": after,
        "effect": float(effect),
        "note": note,
    }


def _remainder(ends: tuple[float, float], explained: Decimal, digits: int) -> Sequence[Change]:
    left = Decimal(str(difference(ends, digits))) - explained
    note = "rounding, or another version of the formulas"
    return [_change(REMAINDER, "", None, None, left, note)] if left else []


def _rounded(value: float, digits: int) -> Decimal:
    if not isfinite(value):
        raise ArithmeticError("no finite figure")
    # repr is the shortest text that means this double: 0.285 is rounded as a reader would, not as its binary neighbour
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), context=_EVERY_DIGIT)


# --- What a run, a month of serving and a purchase cost, from their factors: the causes of each, in their order.

Ends = tuple[float, float]

_INTERRUPTED = (
    "preemptions_per_node_hour",
    "preemptions_per_node_hour_low",
    "preemptions_per_node_hour_high",
    "failures_per_gpu_year",
    "failures_per_gpu_year_low",
    "failures_per_gpu_year_high",
    "wait_hours",
    "restart_hours",
    "checkpoint_gb",
)
_TERMS = (
    "term_months",
    "take_or_pay",
    "charge_commitment",
    "minimum_hours",
    "billing_increment_hours",
    "upfront_usd",
    "recurring_usd_per_hour",
    "prepaid",
)
_SPEED = ("tokens_per_s_per_gpu", "tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high")
# What is trained, how fast, on how many, where and on which terms, at which price: each effect is counted at the
# earlier causes' new values and the later ones' old, so that the order is part of the answer.
OF_A_RUN = (
    Cause("tokens", "tokens", ("tokens",)),
    Cause("throughput", _SPEED[0], _SPEED),
    Cause("cluster size", "gpus", ("gpus", "nodes", "gpus_per_unit", "checkpoint_write_gb_per_s")),
    Cause("interruptions", _INTERRUPTED[0], _INTERRUPTED),
    Cause(
        "overhead and experiments", "evaluation_fraction", ("evaluation_fraction", "ramp_hours", "experiments_fraction")
    ),
    Cause("terms", "term_months", _TERMS),
    Cause("price", "usd_per_gpu_hour", ("usd_per_gpu_hour", "price_low_ratio", "price_high_ratio")),
    Cause("storage", "storage_usd_per_gb_month", ("dataset_gb", "checkpoints_gb", "storage_usd_per_gb_month")),
    Cause("egress", "egress_usd_per_gb", ("egress_gb", "egress_usd_per_gb")),
)
_OF_TOKENS = (
    Cause("tokens served", "tokens_per_month", ("tokens_per_month",)),
    Cause("speed", "tokens_per_s_per_gpu", ("tokens_per_s_per_gpu",)),
    Cause("time in use", "busy_fraction", ("busy_fraction",)),
    Cause("price", "usd_per_gpu_hour", ("usd_per_gpu_hour",)),
)
_GROUPS = ("scope", "workload", "purchase", "facility", "energy", "staff", "contracts", "finance", "tax", "residual")
_PER_MTOK_DIGITS = 9  # of a price of a million tokens: there a hundredth of a cent is much


def of_runs(before: Values, after: Values, ends: Ends) -> list[Change]:
    """Return why one run costs more than another, from the factors of both."""
    return in_turn(before, after, OF_A_RUN, run_usd, ends)


def run_usd(factors: Values) -> float:
    """Return what a run costs, by the factors of its bill."""
    if missing := [name for name in INPUT_NAMES if name not in factors]:
        raise UsageError(f"the saved factors lack {missing[0]}: ask again and save the answer with --format json.")
    # None is not known, which the formulas have as NaN.
    numbers = {name: np.nan if factors[name] is None else float(factors[name]) for name in INPUT_NAMES}
    return float(price_runs(Columns({name: np.array([value]) for name, value in numbers.items()})).cost_usd[0])


def _serving_factors(option: Values) -> dict[str, float]:
    """Return the factors of the price of tokens; tokens of a paid hour that is worked through are the speed."""
    carried, hours = option["tokens_per_month"], option["gpu_hours"]
    speed, price = option["tokens_per_s_per_gpu"], option["usd_per_gpu_hour"]
    # A price of tokens needs a load: an answer without one has none to compare.
    if not (carried and hours and speed):
        raise UsageError(
            "compare: one answer has no option that serves the load, so it has no price of tokens to compare."
        )
    busy = carried / (hours * speed * SECONDS_PER_HOUR)
    return {
        "tokens_per_month": carried,
        "tokens_per_s_per_gpu": speed,
        "busy_fraction": busy,
        "usd_per_gpu_hour": price,
    }


def of_owning(first: Values, second: Values, ends: Ends) -> list[Change]:
    """Return what each input of two plans does to what owning saves, and to either side."""
    from gpucost.money.comparison import outcome

    values_usd: list[tuple[float, float]] = []

    def saving(values: Values) -> float:
        # Curves change like inputs, one after the other, and are handed over as tables.
        tables = {name: np.array(values[name]) for name in first["tables"]}
        try:
            worth = outcome({name: value for name, value in values.items() if name not in tables}, tables)
        except (LookupError, NameError, TypeError, ValueError) as error:
            raise UsageError(
                f"the inputs of one of the plans (model.inputs) are not those of this version: {error}."
            ) from None
        own_usd, rent_usd = float(worth.own_usd[0]), float(worth.rent_usd[0])
        if isfinite(rent_usd - own_usd):
            values_usd.append((own_usd, rent_usd))
        return rent_usd - own_usd

    before, after = (
        {**{row["name"]: row["value"] for row in model["inputs"]}, **model["tables"]} for model in (first, second)
    )
    # Every input is a cause of its own, in the order of its group; curves, which are no inputs, come last.
    inputs = sorted(first["inputs"], key=lambda row: (*_GROUPS, row["group"]).index(row["group"]))
    names = [row["name"] for row in inputs if row["name"] in after]
    curves = sorted(set(after) - {row["name"] for row in inputs})
    causes = [Cause(name, name, (name,)) for name in (*names, *curves)]
    rows = in_turn(before, after, causes, saving, ends)
    # `saving` was asked once for each finite figure, the first being the start: neighbours are an effect's two ends.
    for row, (was, now) in zip(rows, pairwise(values_usd), strict=False):
        row["own_effect_usd"], row["rent_effect_usd"] = now[0] - was[0], now[1] - was[1]
        if isinstance(row["before"], list):  # a curve has no value to show
            row["before"] = row["after"] = None
    return [row for row in rows if row["effect"] or row.get("own_effect_usd") or row.get("rent_effect_usd")]


# --- Two answers compared: what changed first, then what each cause does to the figure that both have.

Answer = Mapping[str, Any]

# What leads an answer, in the order in which a reader meets it: the offer, when it was seen, the layout.
_SELLER = ("gpu", "gpus", "provider", "instance_type", "region", "option", "term_months", "usd_per_gpu_hour")
_SEEN = ("price_observed_on", "price_kind")
_DEGREES = ("tensor", "pipeline", "context", "expert", "data")
_LAYOUT = ("sharding", "micro_batch", "global_batch", "recompute", "precision")
_SPEED_COLUMNS = ("tokens_per_s_per_gpu", "mfu_fraction")
_OVER_LINKS = ("tensor", "context", "expert", "pipeline", "data")  # parts of a step
_SPEED_DIGITS, _MEMORY_DIGITS = 6, 9


class _Subject(NamedTuple):
    """What two answers are compared by: a figure of each, what leads it, and the causes of the difference."""

    name: str
    figure: str
    value: Callable[[Answer, int], float]
    side: Callable[[Answer, int], Side]
    causes: Callable[[Answer, Answer, tuple[float, float], int], list[Change]]
    digits: int = 2


def compare(
    first: Answer, second: Answer, rank: int = 1, names: tuple[str, str] = ("first", "second")
) -> Comparison | ScenarioAnswer:
    """Return what explains the difference between two answers; of two reports, part by part by their names."""
    if not first["kind"] == second["kind"] == "scenario":
        return bridge(first, second, rank, names)
    # A comparison within a report is made of its other parts: those are compared.
    sides = [
        {part["name"]: part for part in answer["parts"] if part["part"] != "comparison"} for answer in (first, second)
    ]
    shared = [name for name in sides[0] if name in sides[1]]
    if not shared:
        raise UsageError(f"the two have no part in common: {', '.join(sides[0])}; {', '.join(sides[1])}.")
    parts: list[ScenarioPart] = [
        {
            "name": name,
            "part": sides[0][name]["part"],
            "payload": bridge(sides[0][name]["payload"], sides[1][name]["payload"], rank, names),
        }
        for name in shared
    ]
    alone = [
        f"{name} stands in the {label} alone."
        for side, counterpart, label in ((sides[0], sides[1], names[0]), (sides[1], sides[0], names[1]))
        for name in side
        if name not in counterpart
    ]
    return {
        "kind": "scenario",
        "schema_version": SCHEMA_VERSION,
        "lead": "",
        "name": f"{names[0]} and {names[1]} compared",
        "description": "",
        "request": {"first": first["request"], "second": second["request"]},
        "as_of": second["as_of"],
        "catalog_version": second["catalog_version"],
        "parts": parts,
        "warnings": alone,
        "sources": {**first["sources"], **second["sources"]},
    }


def bridge(first: Answer, second: Answer, rank: int = 1, names: tuple[str, str] = ("first", "second")) -> Comparison:
    """Return what explains the difference between two answers that have a figure in common."""
    # What they have in common is their kind, or the speed that an estimate and a layout share.
    kinds = {str(first["kind"]), str(second["kind"])}
    if kinds == {"estimate", "throughput"}:
        subject = _SUBJECTS["throughput"]
    elif len(kinds) > 1 or not kinds & set(_SUBJECTS):
        kinds_text = " with ".join(_UNLIKE.get(kind, kind) for kind in sorted(kinds))
        raise UsageError(
            f"there is no figure to compare {kinds_text} by. compare takes two answers of estimate, inference, tco,"
            " mix, throughput, or fit of training on one --gpu, an estimate with a throughput, or two reports."
        )
    else:
        loads = kinds == {"inference"} and _has_load(first) and _has_load(second)
        subject = _SUBJECTS["serving load" if loads else kinds.pop()]
    before, after = subject.side(first, rank), subject.side(second, rank)
    try:
        ends = subject.value(first, rank), subject.value(second, rank)
        changes = subject.causes(first, second, ends, rank)
        effect = difference(ends, subject.digits)
    except ArithmeticError:
        raise UsageError("the figures of the two answers cannot be compared: a file was changed.") from None
    # who, where, on which terms, the layout; what follows from it comes last
    differing = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    differing.sort(key=lambda name: name in _RESULTS | {subject.figure})
    differs: list[Differs] = [
        {"name": name, "before": before.get(name), "after": after.get(name), "unit": unit_of(name)}
        for name in differing
    ]
    warnings = []
    if first["catalog_version"] != second["catalog_version"]:
        warnings.append(f"Different catalogs: {first['catalog_version']} and {second['catalog_version']}.")
    versions = first.get("gpucost_version"), second.get("gpucost_version")
    if versions[0] != versions[1] and all(versions):
        warnings.append(f"Different versions of gpucost: {versions[0]} and {versions[1]}.")
    # by how much the second differs, and what does most of it
    lead = f"Nothing that affects the {subject.name} differs."
    if changes:
        unit = unit_of(subject.figure)
        name = "the second" if names[1] == "second" else names[1]
        sentence = _SENTENCES.get(subject.figure, "{2} costs {0} {1}")
        sentence = sentence.format(_number(abs(effect), unit), "less" if effect < 0 else "more", name)
        if sentence.startswith("the second"):
            sentence = sentence.replace("the second", "The second", 1)
        # a share of a figure that changes sign, or that was nothing, says nothing
        share = f", {abs(effect / ends[0]):.1%}" if ends[0] * ends[1] > 0 else ""
        largest = max(changes, key=lambda row: abs(row["effect"]))
        cause = largest["factor"]
        if cause == largest["name"] and unit_of(cause):  # an input of a plan: its unit stands with its figures
            cause = cause.removesuffix(suffix_of(cause)).strip("_").replace("_", " ") or cause  # "tokens" is all unit
        links = ""  # of two steps of one layout it is said what goes over links: that differs where the machines do
        if subject.figure == "gpu_s_per_mtok" and before["layout"] == after["layout"]:
            cost = sum(row["effect"] for row in changes if row["factor"] in _OVER_LINKS)
            links = f"; what goes over links takes {'+' if cost > 0 else ''}{_number(cost)}"
        lead = (
            f"{sentence} ({_number(ends[1], unit)} against {_number(ends[0], unit)}{share}); the largest effect is"
            f" {cause}, {'+' if largest['effect'] > 0 else ''}{_number(largest['effect'], unit)}{links}."
        )
    return {
        "kind": "comparison",
        "schema_version": SCHEMA_VERSION,
        "request": {"first": first["request"], "second": second["request"]},
        "as_of": second["as_of"],
        "catalog_version": second["catalog_version"],
        "lead": lead,
        "subject": subject.name,
        "figure": subject.figure,
        "unit": unit_of(subject.figure),
        "first": names[0],
        "second": names[1],
        "before": before,
        "after": after,
        "before_value": ends[0],
        "after_value": ends[1],
        "difference": effect,
        "what_changed": differs,
        "changes": changes,
        "request_changes": request_changes(first["request"], second["request"]),
        "warnings": warnings,
        "sources": {**first["sources"], **second["sources"]},
    }


def _option(answer: Answer, rank: int) -> Mapping[str, Any]:
    options: Sequence[Mapping[str, Any]] = answer["options"]
    option = next((row for row in options if row["rank"] == rank), None)
    if option is None:
        raise UsageError(f"an answer has {len(options)} options; there is no option {rank}.")
    return option


def _of_options(figure: str, names: Sequence[str]) -> dict[str, Any]:
    """Return how answers with options give their figure and what leads them."""

    def side(answer: Answer, rank: int) -> Side:
        option = _option(answer, rank)
        facts = {"model": answer["request"]["model"], **{name: option.get(name) for name in names}}
        return {**facts, **_layout(option["layout"])}

    return {"figure": figure, "value": lambda answer, rank: float(_option(answer, rank)[figure]), "side": side}


def _layout(layout: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layout: its degrees in words, and the rest of it.

    >>> _layout({"tensor": 2, "pipeline": 1, "data": 4, "recompute": "none"})
    {'layout': 'tensor 2, data 4', 'recompute': 'none'}
    """
    degrees = ", ".join(f"{name} {layout[name]}" for name in _DEGREES if layout.get(name, 1) > 1)
    return {"layout": degrees or "one GPU", **{name: layout[name] for name in _LAYOUT if name in layout}}


def _token_causes(first: Answer, second: Answer, ends: Ends, rank: int) -> list[Change]:
    """Return why tokens cost more: by the million, or those of a month where both answers have a load.

    usd_per_mtok = usd_per_gpu_hour ÷ (tokens_per_s_per_gpu × 3600 × busy_fraction) × 10⁶
    """
    monthly = _has_load(first) and _has_load(second)

    def figure(values: Values) -> float:
        hourly = values["tokens_per_s_per_gpu"] * SECONDS_PER_HOUR * values["busy_fraction"]
        return float(values["usd_per_gpu_hour"] / hourly * (values["tokens_per_month"] if monthly else 1e6))

    before, after = _serving_factors(_option(first, rank)), _serving_factors(_option(second, rank))
    if monthly:
        return in_turn(before, after, _OF_TOKENS, figure, ends)
    return in_turn(before, after, _OF_TOKENS[1:], figure, ends, _PER_MTOK_DIGITS)  # a price has no tokens served


def _has_load(answer: Answer) -> bool:
    return any(answer["request"].get(name) for name in ("requests_per_s", "tokens_per_month"))


def _timed(answer: Answer, rank: int) -> tuple[Mapping[str, Any], dict[str, float]]:
    """Return a speed and the seconds of a step by part, of a timed layout or of an option of an estimate."""
    if answer["kind"] == "throughput":
        return answer, {row["part"]: row["time_s"] for row in answer["parts"]}
    option = _option(answer, rank)
    return option, {name.removesuffix("_s"): seconds for name, seconds in option["components"].items()}


def _speed_side(answer: Answer, rank: int) -> Side:
    # An estimate names its model in the request, a timed layout in itself.
    timed, _ = _timed(answer, rank)
    model = answer.get("model") or answer["request"]["model"]
    facts = {"model": model, "gpu": timed["gpu"], "gpus": timed["layout"]["gpus"]}
    settings = {
        name: timed[name] for name in ("system", "sequence_tokens", "software", *_SPEED_COLUMNS) if name in timed
    }
    return {**facts, **_layout(timed["layout"]), **settings}


def _step_causes(first: Answer, second: Answer, ends: Ends, rank: int) -> list[Change]:
    """Return what each part of a step adds to the GPU-seconds of a million tokens."""
    sides = []
    for answer, end in ((first, ends[0]), (second, ends[1])):
        parts = _timed(answer, rank)[1]
        step_s = sum(parts.values())
        # a step's parts, as shares of the figure: their seconds are of steps that may differ in tokens and GPUs
        sides.append({name: seconds / step_s * end for name, seconds in parts.items() if seconds})
    return side_by_side(sides[0], sides[1], ends, _SPEED_DIGITS)


def _plan_side(answer: Answer, rank: int) -> Side:
    inputs = {row["name"]: row["value"] for row in answer["model"]["inputs"]}
    # The inputs that a reader knows a plan by; the changes name every other one.
    names = ("gpus", "months", "utilisation_fraction", "server_usd", "rent_usd_per_gpu_hour")
    facts = {"gpu": answer["request"].get("gpu"), **{name: inputs.get(name) for name in names}}
    return {**facts, "npv_own_usd": answer["npv_usd"]["own"], "npv_rent_usd": answer["npv_usd"]["rent"]}


def _mix_side(answer: Answer, rank: int) -> Side:
    facts = {name: answer["request"].get(name) for name in ("gpu", "provider", "constant")}
    facts["months"] = len(answer["months"])
    return {**facts, "best_pure_usd": answer["best_pure_usd"], "cost_usd": answer["cost_usd"]}


def _mix_causes(first: Answer, second: Answer, ends: Ends, rank: int) -> list[Change]:
    """Return what each supply adds to what a mix costs: its signings and its use together."""
    sides: list[dict[str, float]] = []
    for answer in (first, second):
        costs: dict[str, float] = {}
        for row in answer["plan"]:
            costs[row["option"]] = costs.get(row["option"], 0.0) + row["cost_usd"]
        sides.append(costs)
    return side_by_side(sides[0], sides[1], ends)


def _fit_side(answer: Answer, rank: int) -> Side:
    names = ("model", "gpu", "gpus", "method", "optimizer", "sequence_tokens", "usable_gb", "headroom_gb", "needed_gb")
    return {name: answer.get(name) for name in names}


def _memory_causes(first: Answer, second: Answer, ends: Ends, rank: int) -> list[Change]:
    sides = [{row["component"]: row["needed_gb"] for row in answer["components"]} for answer in (first, second)]
    return side_by_side(sides[0], sides[1], ends, _MEMORY_DIGITS)


_OF_SERVING = (
    *_SELLER,
    *_SEEN,
    "precision",
    "engine",
    "batch",
    "replicas",
    "tokens_per_s_per_gpu",
    "tpot_ms",
    "usd_per_month",
    "usd_per_mtok",
)
_SUBJECTS = {
    "estimate": _Subject(
        "training run",
        **_of_options("cost_usd", (*_SELLER, *_SEEN, *_SPEED_COLUMNS, "days", "cost_usd")),
        causes=lambda first, second, ends, rank: of_runs(
            _option(first, rank)["factors"], _option(second, rank)["factors"], ends
        ),
    ),
    "inference": _Subject(
        "serving", **_of_options("usd_per_mtok", _OF_SERVING), causes=_token_causes, digits=_PER_MTOK_DIGITS
    ),
    "serving load": _Subject("serving", **_of_options("usd_per_month", _OF_SERVING), causes=_token_causes),
    "throughput": _Subject(
        "speed of training",
        "gpu_s_per_mtok",
        lambda answer, rank: 1e6 / float(_timed(answer, rank)[0]["tokens_per_s_per_gpu"]),
        _speed_side,
        _step_causes,
        _SPEED_DIGITS,
    ),
    "tco": _Subject(
        "owning against renting",
        "npv_saving_usd",
        lambda answer, _: float(answer["npv_usd"]["saving"]),
        _plan_side,
        lambda first, second, ends, _: of_owning(first["model"], second["model"], ends),
    ),
    "mix": _Subject(
        "mix of capacity",
        "cost_usd",
        lambda answer, _: float(answer["cost_usd"]),
        _mix_side,
        _mix_causes,
    ),
    "fit": _Subject(
        "memory of training",
        "needed_gb",
        lambda answer, _: float(answer["needed_gb"]),
        _fit_side,
        _memory_causes,
        _MEMORY_DIGITS,
    ),
}
_UNLIKE = {"fit_everywhere": "fit without --gpu", "serving_fit": "fit --serving"}  # kinds that are no subject
# Figures that follow from what is chosen: they are shown last.
_RESULTS = {
    *_SPEED_COLUMNS,
    "days",
    "cost_usd",
    "tpot_ms",
    "usd_per_month",
    "usd_per_mtok",
    "npv_own_usd",
    "npv_rent_usd",
    "best_pure_usd",
    "headroom_gb",
    "needed_gb",
}


def request_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[RequestChange]:
    """Return the arguments that two requests do not share."""
    return [
        {"name": name, "before": first.get(name), "after": second.get(name)}
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


_WHOLE_USD = 1000  # from which nobody reads cents
_SENTENCES = {  # of a figure: what the second does; {0} is how much, {1} more or less, {2} what it is called
    "gpu_s_per_mtok": "{2} takes {0} GPU-seconds {1} for a million tokens",
    "needed_gb": "{2} needs {0} GB {1}",
    "npv_saving_usd": "Owning saves {0} {1} in {2}",
    "usd_per_mtok": "{2} costs {0} {1} per million tokens",
    "usd_per_month": "{2} costs {0} {1} a month",
}


def _number(value: float, unit: str = "") -> str:
    """Write a figure: dollars with their sign, whole ones from a thousand on."""
    money = unit.startswith("USD")
    digits = 0 if money and abs(value) >= _WHOLE_USD else 2
    text = f"{abs(value):,.{digits}f}" if abs(value) >= 1 or value == 0 else f"{abs(value):.4g}"
    return f"{'-' if value < 0 else ''}{'$' if money else ''}{text}"
