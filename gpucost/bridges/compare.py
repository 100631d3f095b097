"""Two answers compared: what changed first, then what each cause does to the figure that both have."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gpucost.answers import SCHEMA_VERSION
from gpucost.answers.comparison import Change, Comparison, Differs, RequestChange, Side
from gpucost.answers.scenario import Scenario, ScenarioPart
from gpucost.bridges import money
from gpucost.bridges.core import difference, side_by_side
from gpucost.errors import UsageError
from gpucost.units import suffix_of, unit_of

Answer = Mapping[str, Any]

_SELLER = ("gpu", "gpus", "provider", "instance_type", "region", "option", "term_months", "usd_per_gpu_hour")
_SEEN = ("price_observed_on", "price_kind")
_DEGREES = ("tensor", "pipeline", "context", "expert", "data")
_LAYOUT = ("sharding", "micro_batch", "global_batch", "recompute", "precision")
_SPEED = ("tokens_per_s_per_gpu", "mfu_fraction")
_OVER_LINKS = ("tensor", "context", "expert", "pipeline", "data")  # parts of a step
_SPEED_DIGITS, _MEMORY_DIGITS = 6, 9


class Subject(NamedTuple):
    """What two answers are compared by: a figure of each, what leads it, and the causes of the difference."""

    name: str
    figure: str
    value: Callable[[Answer, int], float]
    side: Callable[[Answer, int], Side]
    causes: Callable[[Answer, Answer, tuple[float, float], int], list[Change]]
    digits: int = 2


def compare(
    first: Answer, second: Answer, rank: int = 1, names: tuple[str, str] = ("first", "second")
) -> Comparison | Scenario:
    """Return what explains the difference between two answers; of two reports, part by part by their names."""
    both = first["kind"] == second["kind"] == "scenario"
    return _parts(first, second, rank, names) if both else bridge(first, second, rank, names)


def bridge(first: Answer, second: Answer, rank: int = 1, names: tuple[str, str] = ("first", "second")) -> Comparison:
    """Return what explains the difference between two answers that have a figure in common."""
    subject = _subject(first, second)
    before, after = subject.side(first, rank), subject.side(second, rank)
    try:
        ends = subject.value(first, rank), subject.value(second, rank)
        changes = subject.causes(first, second, ends, rank)
        effect = difference(ends, subject.digits)
    except ArithmeticError:
        raise UsageError("the figures of the two answers cannot be compared: a file was changed.") from None
    changed = _changed(before, after, results={subject.figure})
    found: Comparison = {
        "kind": "comparison",
        "schema_version": SCHEMA_VERSION,
        "request": {"first": first["request"], "second": second["request"]},
        "as_of": second["as_of"],
        "catalog_version": second["catalog_version"],
        "lead": "",
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
        "what_changed": changed,
        "changes": changes,
        "request_changes": request_changes(first["request"], second["request"]),
        "warnings": _warnings(first, second),
        "sources": {**first["sources"], **second["sources"]},
    }
    return {**found, "lead": _lead(found)}


def _option(answer: Answer, rank: int) -> Mapping[str, Any]:
    options: Sequence[Mapping[str, Any]] = answer["options"]
    found = next((row for row in options if row["rank"] == rank), None)
    if found is None:
        raise UsageError(f"an answer has {len(options)} options; there is no option {rank}.")
    return found


def _of_options(figure: str, names: Sequence[str]) -> dict[str, Any]:
    """Return how answers with options give their figure and what leads them."""

    def side(answer: Answer, rank: int) -> Side:
        option = _option(answer, rank)
        found = {"model": answer["request"]["model"], **{name: option.get(name) for name in names}}
        return {**found, **_layout(option["layout"])}

    return {"figure": figure, "value": lambda answer, rank: float(_option(answer, rank)[figure]), "side": side}


def _layout(layout: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layout: its degrees in words, and the rest of it.

    >>> _layout({"tensor": 2, "pipeline": 1, "data": 4, "recompute": "none"})
    {'layout': 'tensor 2, data 4', 'recompute': 'none'}
    """
    degrees = ", ".join(f"{name} {layout[name]}" for name in _DEGREES if layout.get(name, 1) > 1)
    return {"layout": degrees or "one GPU", **{name: layout[name] for name in _LAYOUT if name in layout}}


def _run_causes(first: Answer, second: Answer, ends: tuple[float, float], rank: int) -> list[Change]:
    return money.of_runs(_option(first, rank)["factors"], _option(second, rank)["factors"], ends)


def _token_causes(first: Answer, second: Answer, ends: tuple[float, float], rank: int) -> list[Change]:
    monthly = _has_load(first) and _has_load(second)
    return money.of_tokens(_option(first, rank), _option(second, rank), ends, monthly)


def _has_load(answer: Answer) -> bool:
    return any(answer["request"].get(name) for name in ("requests_per_s", "tokens_per_month"))


def _timed(answer: Answer, rank: int) -> tuple[Mapping[str, Any], dict[str, float]]:
    """Return a speed and the seconds of a step by part, of a timed layout or of an option of an estimate."""
    if answer["kind"] == "throughput":
        return answer, {row["part"]: row["time_s"] for row in answer["parts"]}
    option = _option(answer, rank)
    return option, {name.removesuffix("_s"): seconds for name, seconds in option["components"].items()}


def _speed_side(answer: Answer, rank: int) -> Side:
    timed, _ = _timed(answer, rank)
    model = answer.get("model") or answer["request"]["model"]
    found = {"model": model, "gpu": timed["gpu"], "gpus": timed["layout"]["gpus"]}
    rest = {name: timed[name] for name in ("system", "sequence_tokens", "software", *_SPEED) if name in timed}
    return {**found, **_layout(timed["layout"]), **rest}


def _gpu_seconds(answer: Answer, rank: int) -> float:
    """Return the GPU-seconds of a million tokens: the time in which one GPU trains them."""
    return 1e6 / float(_timed(answer, rank)[0]["tokens_per_s_per_gpu"])


def _step_causes(first: Answer, second: Answer, ends: tuple[float, float], rank: int) -> list[Change]:
    """Return what each part of a step adds to the GPU-seconds of a million tokens."""
    sides = []
    for answer, end in ((first, ends[0]), (second, ends[1])):
        parts = _timed(answer, rank)[1]
        step_s = sum(parts.values())
        sides.append({name: seconds / step_s * end for name, seconds in parts.items() if seconds})
    return side_by_side(sides[0], sides[1], ends, _SPEED_DIGITS)


def _plan_side(answer: Answer, rank: int) -> Side:
    known = {row["name"]: row["value"] for row in answer["model"]["inputs"]}
    names = ("gpus", "months", "utilisation_fraction", "server_usd", "rent_usd_per_gpu_hour")
    found = {"gpu": answer["request"].get("gpu"), **{name: known.get(name) for name in names}}
    return {**found, "npv_own_usd": answer["npv_usd"]["own"], "npv_rent_usd": answer["npv_usd"]["rent"]}


def _mix_side(answer: Answer, rank: int) -> Side:
    asked = {name: answer["request"].get(name) for name in ("gpu", "provider", "constant")}
    asked["months"] = len(answer["months"])
    return {**asked, "best_pure_usd": answer["best_pure_usd"], "cost_usd": answer["cost_usd"]}


def _fit_side(answer: Answer, rank: int) -> Side:
    names = ("model", "gpu", "gpus", "method", "optimizer", "sequence_tokens", "usable_gb", "headroom_gb", "needed_gb")
    return {name: answer.get(name) for name in names}


def _memory_causes(first: Answer, second: Answer, ends: tuple[float, float], rank: int) -> list[Change]:
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
    "estimate": Subject(
        "training run", **_of_options("cost_usd", (*_SELLER, *_SEEN, *_SPEED, "days", "cost_usd")), causes=_run_causes
    ),
    "inference": Subject(
        "serving", **_of_options("usd_per_mtok", _OF_SERVING), causes=_token_causes, digits=money.PER_MTOK_DIGITS
    ),
    "serving load": Subject("serving", **_of_options("usd_per_month", _OF_SERVING), causes=_token_causes),
    "throughput": Subject(
        "speed of training", "gpu_s_per_mtok", _gpu_seconds, _speed_side, _step_causes, _SPEED_DIGITS
    ),
    "tco": Subject(
        "owning against renting",
        "npv_saving_usd",
        lambda answer, _: float(answer["npv_usd"]["saving"]),
        _plan_side,
        lambda first, second, ends, _: money.of_owning(first["model"], second["model"], ends),
    ),
    "mix": Subject(
        "mix of capacity",
        "cost_usd",
        lambda answer, _: float(answer["cost_usd"]),
        _mix_side,
        lambda first, second, ends, _: money.of_mixes(first, second, ends),
    ),
    "fit": Subject(
        "memory of training",
        "needed_gb",
        lambda answer, _: float(answer["needed_gb"]),
        _fit_side,
        _memory_causes,
        _MEMORY_DIGITS,
    ),
}
_UNLIKE = {"fit_everywhere": "fit without --gpu", "serving_fit": "fit --serving"}  # kinds that are no subject
_RESULTS = {
    *_SPEED,
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


def _subject(first: Answer, second: Answer) -> Subject:
    """Return what two answers have in common: their kind, or the speed that an estimate and a layout share."""
    kinds = {str(first["kind"]), str(second["kind"])}
    if kinds == {"estimate", "throughput"}:
        return _SUBJECTS["throughput"]
    if len(kinds) > 1 or not kinds & set(_SUBJECTS):
        said = " with ".join(_UNLIKE.get(kind, kind) for kind in sorted(kinds))
        raise UsageError(
            f"there is no figure to compare {said} by. compare takes two answers of estimate, inference, tco, mix,"
            " throughput, or fit of training on one --gpu, an estimate with a throughput, or two reports."
        )
    loads = kinds == {"inference"} and _has_load(first) and _has_load(second)
    return _SUBJECTS["serving load" if loads else kinds.pop()]


def _parts(first: Answer, second: Answer, rank: int, names: tuple[str, str]) -> Scenario:
    """Compare the parts of two scenarios that bear the same name; the others are named."""
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
        f"{name} stands in the {which} alone."
        for side, other, which in ((sides[0], sides[1], names[0]), (sides[1], sides[0], names[1]))
        for name in side
        if name not in other
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


def _changed(before: Side, after: Side, results: set[str]) -> list[Differs]:
    """Return what the two do not share: who, where, on which terms, the layout; what follows from it comes last."""
    names = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    names.sort(key=lambda name: name in _RESULTS | results)
    return [
        {"name": name, "before": before.get(name), "after": after.get(name), "unit": unit_of(name)} for name in names
    ]


def request_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[RequestChange]:
    """Return the arguments that two requests do not share."""
    return [
        {"name": name, "before": first.get(name), "after": second.get(name)}
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


_WHOLE_USD = 1000  # from which nobody reads cents
_SAID = {  # of a figure: what the second does; {0} is how much, {1} more or less, {2} what it is called
    "gpu_s_per_mtok": "{2} takes {0} GPU-seconds {1} for a million tokens",
    "needed_gb": "{2} needs {0} GB {1}",
    "npv_saving_usd": "Owning saves {0} {1} in {2}",
    "usd_per_mtok": "{2} costs {0} {1} per million tokens",
    "usd_per_month": "{2} costs {0} {1} a month",
}


def _lead(found: Comparison) -> str:
    """Say by how much the second differs and what does most of it."""
    if not found["changes"]:
        return f"Nothing that moves the {found['subject']} differs."
    more, largest = found["difference"], max(found["changes"], key=lambda row: abs(row["effect"]))
    ends, name = (found["before_value"], found["after_value"]), found["second"]
    unit = found["unit"]
    words = _number(abs(more), unit), "less" if more < 0 else "more", "the second" if name == "second" else name
    said = _SAID.get(found["figure"], "{2} costs {0} {1}").format(*words)
    said = said.replace("the second", "The second", 1) if said.startswith("the second") else said
    share = f", {abs(more / ends[0]):.1%}" if ends[0] * ends[1] > 0 else ""
    effect = f"{'+' if largest['effect'] > 0 else ''}{_number(largest['effect'], unit)}"
    cause = largest["factor"]
    if cause == largest["name"] and unit_of(cause):  # an input of a plan: its unit stands with its figures
        cause = cause.removesuffix(suffix_of(cause)).strip("_").replace("_", " ") or cause  # "tokens" is all unit
    return (
        f"{said} ({_number(ends[1], unit)} against {_number(ends[0], unit)}{share}); the largest effect is {cause},"
        f" {effect}{_of_links(found)}."
    )


def _of_links(found: Comparison) -> str:
    """Say what the links do, where the parts of a step of one layout are compared."""
    if found["figure"] != "gpu_s_per_mtok" or found["before"]["layout"] != found["after"]["layout"]:
        return ""
    cost = sum(row["effect"] for row in found["changes"] if row["factor"] in _OVER_LINKS)
    return f"; what goes over links takes {'+' if cost > 0 else ''}{_number(cost)}"


def _number(value: float, unit: str = "") -> str:
    """Write a figure: dollars with their sign, whole ones from a thousand on."""
    money = unit.startswith("USD")
    digits = 0 if money and abs(value) >= _WHOLE_USD else 2
    text = f"{abs(value):,.{digits}f}" if abs(value) >= 1 or value == 0 else f"{abs(value):.4g}"
    return f"{'-' if value < 0 else ''}{'$' if money else ''}{text}"


def _warnings(first: Answer, second: Answer) -> list[str]:
    found = []
    if first["catalog_version"] != second["catalog_version"]:
        found.append(f"Different catalogs: {first['catalog_version']} and {second['catalog_version']}.")
    versions = first.get("gpucost_version"), second.get("gpucost_version")
    if versions[0] != versions[1] and all(versions):
        found.append(f"Different versions of gpucost: {versions[0]} and {versions[1]}.")
    return found
