"""Reading a saved answer: JSON of the present shape, or a sentence that says how to get one."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from itertools import islice
from math import fsum, isclose
from pathlib import Path
from typing import Any, cast

from gpucost.answers import KINDS, SCHEMA_VERSION
from gpucost.answers.schema import answer_schema, misfits
from gpucost.answers.seal import seal_of
from gpucost.answers.training import Estimate
from gpucost.errors import UsageError
from gpucost.gate import beside, read_json, shown
from gpucost.options import OPTIONS
from gpucost.units import suffix_of
from gpucost.words import GOALS

_OLD_NAMES = {"summary": "lead", "assumptions_said": "said"}  # of schema version 1
_DAYS = ("as_of", "price_observed_on")
_MONEY = re.compile(r"(^|_)usd($|_per_)")
# money that may lie below zero by what it, its record or a table above it is called: savings, differences, cash flows,
# gains, lines of a statement
_SIGNED = re.compile(
    "npv|by_year|saving|differ|delta|effect|change|cash|cumulative|versus|minus|advantage|gain|resale|residual|credit"
    "|tax|benefit|break|net|flow|discount|error|swing|premium|margin|profit|spread|value|worse|better|shadow|draw"
    "|interest|revenue|refund|statements|contracts|reservation|billed|effective|totals|showback|adds_usd|trade_in|headroom"
)
# not walked: lines that take off as well as add; how many values each argument takes; answers that are checked alone
_APART = ("bill", "axes", "payload")
_OFFERED = ("options", "highlights", "alternatives", "excluded", "rows", "front")  # what is sold, in ways of the table
_GIVEN = ("facts", "model", "plan", "checks")  # what an answer was given, or was told to judge: in no order of ours
_MOST = 1e36  # of any figure: the work of the largest run is a hundred thousandth of it
_LEAST = 1e-36  # of what others are divided by
# shares of a whole, with the noise of a division; the work that is held against a peak may count more than is done
_MOST_OF: dict[str | None, float] = {"share": 1 + 1e-9, "of_peak": 4.0}
# kind of an answer -> what its question cannot do without
_ASKED = {
    "estimate": ("model", "tokens"),
    "inference": ("model",),
    "fit": ("model",),
    "throughput": ("model", "gpu"),
    "roofline": ("gpu",),
}
_SIDES = ("own", "rent")  # of an ownership
_NAMED = 3  # misfits that a refusal names


def read_answer(path: str | Path, changed: bool = False) -> dict[str, Any]:
    """Read a saved answer of any kind; names that an older version gave to its keys are read as those of today.

    One that no longer fits its seal is refused, unless it may have been `changed`: for whoever tells what changed.
    """
    payload = read_json(path, "limit_answer_file_bytes")
    if not isinstance(payload, dict) or not isinstance(payload.get("kind"), str):
        raise UsageError(f"{str(path)!r} is no saved answer: it has no `kind`. Save one with --format json -o FILE.")
    payload = {_OLD_NAMES.get(name, name): value for name, value in payload.items()}
    check(payload, str(path))
    seal = payload.pop("seal", None)
    if seal is not None and not changed and seal != seal_of(payload):
        raise UsageError(
            f"{str(path)!r} was changed after it was saved: its seal is that of other content. Ask again and save the"
            " answer with --format json -o FILE, or take the key `seal` out to have it read as it stands."
        )
    return payload


class ContradictionError(UsageError):
    """A checked answer broke while it was read: no rule of ours refused it before."""


@contextmanager
def reading(name: object) -> Iterator[None]:
    """Make a sentence of what breaks while a checked answer is read: its figures contradict each other."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or hasattr(error, "exit_code"):  # said already, by us or by the command line
            raise
        raise ContradictionError(
            f"{shown(name)} does not hold together ({type(error).__name__}): it was changed, saved by another version,"
            " or this is a fault of ours, which --debug shows. Ask again and save it with --format json -o FILE."
        ) from error


def check(payload: Mapping[str, Any], path: str) -> None:
    """Refuse an answer that lacks what its kind must have, before anything reads it."""
    kind = str(payload["kind"])
    if kind not in KINDS:
        raise UsageError(f"{path!r} holds a {kind!r}, which is no answer. There are {', '.join(KINDS)}.")
    version = payload.get("schema_version")
    if version not in ("1", SCHEMA_VERSION):
        stated = "no schema version" if version is None else f"the schema version {shown(version)}"
        raise UsageError(
            f"{path!r} has {stated}; this version reads 1 and"
            f" {SCHEMA_VERSION}. Ask again and save the answer with --format json -o FILE."
        )
    found = list(islice(misfits(payload, answer_schema(kind)), _NAMED))
    if found:
        raise UsageError(
            f"{path!r} is no {kind} as this version writes it ({'; '.join(found)}): it was saved by another version or"
            " changed. Ask again and save the answer with --format json -o FILE."
        )
    _refuse_unasked(payload, path)
    _refuse_impossible(payload, path)
    for part in payload.get("parts") or ():
        if isinstance(part, Mapping) and isinstance(part.get("payload"), Mapping):
            check({"kind": None, **part["payload"]}, path)


def _refuse_unasked(payload: Mapping[str, Any], path: str) -> None:
    """Refuse an answer whose request does not say what its question cannot do without, or asks for no goal."""
    kind, request = str(payload["kind"]), payload.get("request")
    asked = request if isinstance(request, Mapping) else {}
    for name in _ASKED.get(kind, ()):
        if name not in asked:
            raise _changed(path, f"the request of this {kind} does not say {name}")
    if (goal := asked.get("optimize")) and goal not in GOALS.get(kind, (goal,)):
        raise _changed(path, f"request.optimize is {shown(goal)}, no goal")


def _refuse_impossible(payload: Mapping[str, Any], path: str) -> None:
    """Refuse what no answer holds, wherever it stands."""
    if fault := next(_broken(payload), None):
        raise _changed(path, fault)
    given = {name: payload[name] for name in _GIVEN if name in payload}
    answered = {name: value for name, value in payload.items() if name not in given and name != "request"}
    for part in (answered, given):
        for where, record in _records(part):
            for name, value in record.items():
                fault = _fault_of_list(name, value) if isinstance(value, list) else _fault(where, record, name, value)
                if fault:
                    raise _changed(path, fault)
            if record.get("levelised_usd_per_gpu_hour") and "side" in record and _contrary(record):
                raise _changed(path, f"{shown(record.get('name'))} costs by the hour and saves in all, or the reverse")
            if part is answered and (disordered := _disordered(record)):
                raise _changed(path, f"the range of {disordered} has its ends out of order")
            if part is answered and (line := _mispriced(record)):
                raise _changed(path, line)
            if part is answered and (lines := unsummed(record)) is not None:
                raise _changed(path, f"the lines add up to {lines:,.2f}, not to cost_usd {record['cost_usd']:,.2f}")


def _changed(path: str, fault: str) -> UsageError:
    return UsageError(f"{path!r}: {fault}: the file was changed.")


def _fault(where: str, record: Mapping[str, Any], name: str, value: Any) -> str:
    """Return what is wrong with a day that is none or a figure beyond its bounds."""
    if name in _DAYS and value is not None and not _is_day(value):
        return f"{name} is {shown(value)}, no day such as 2026-06-15"
    if not isinstance(value, (int, float)):
        return ""
    if abs(value) > _MOST:
        return f"{name} is {shown(value)}, beyond any figure"
    if value < 0 and never_negative(where, record, name):
        return f"{where}.{name} is {shown(value)}, which cannot be negative".lstrip(".")
    if value > _MOST_OF.get(_rule_of(name), _MOST):
        return f"{where}.{name} is {shown(value)}, more than can be".lstrip(".")
    return ""


@cache
def _rule_of(name: str) -> str | None:
    """Return what rules.csv says of a figure wherever it stands: by its name, else by the suffix that is its unit."""
    rules = {place: rule for kind, place, rule in beside(__file__, "rules")[1:] if kind == "any"}
    bare = name.removesuffix("_low").removesuffix("_high")
    return rules.get(bare) or rules.get(f"*{suffix_of(bare)}")


def never_negative(where: str, record: Mapping[str, Any], name: str) -> bool:
    """Tell whether a figure has a rule, or is money, and nothing that it is called by says how it can be below 0."""
    if (rule := _rule_of(name)) == "count":
        return True
    called = f"{where}.{name} {record.get('name')} {record.get('line')}"
    return (rule is not None or _MONEY.search(name) is not None) and _SIGNED.search(called) is None


def _fault_of_list(name: str, rows: list[Any]) -> str:
    """Return what is wrong with a list of days, or with a way to buy."""
    if name in _DAYS:
        return f"{name} is {shown(rows)}, no day such as 2026-06-15"
    if name in _OFFERED and (bought := _no_option(rows)) is not None:
        return f"an option is bought as {shown(bought)}, which is no way"
    return ""


def _no_option(offers: list[Any]) -> str | None:
    """Return the first way to buy an offer that no rule knows."""
    sold = (one for one in offers if isinstance(one, dict) and "option" in one and "provider" in one)
    ways = (str(one["option"]) for one in sold if one["option"] is not None)
    return next((way for way in ways if way not in OPTIONS), None)


def _broken(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield which rule of rules.csv an answer breaks, by the path of the key, and what its own lists contradict."""
    for kind, place, rule in beside(__file__, "rules")[1:]:
        if kind == payload["kind"]:
            keeps, words = _RULES[rule]
            for where, value in _at(payload, place.split(".")):
                if not keeps(value):
                    yield f"{where} {'is missing' if value is _MISSING else words.format(shown(value))}"
    if payload["kind"] == "tco":
        yield from _broken_sides(payload)
    if payload["kind"] == "validation" and (strange := set(payload["worst"]) - {row["id"] for row in payload["items"]}):
        yield f"worst names {shown(min(strange))}, which items does not hold"
    if payload["kind"] == "mix":
        yield from _broken_mix(payload)


def _broken_mix(mix: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a mix contradicts: a signed supply without a term, a cost that is not that of its plan."""
    for number, row in enumerate(mix["plan"]):
        if row["signed_in_month"] and None in (row["gpus"], row["from_month"], row["months"]):
            yield f"plan[{number}] is signed, and lacks gpus, from_month or months"
    cost, pure, saving = mix["cost_usd"], mix["best_pure_usd"], mix["saving_usd"]
    slack = 1e-6 * max(abs(cost), abs(pure or 0.0), 1.0)
    if abs(fsum(row["cost_usd"] for row in mix["plan"]) - cost) > slack:
        yield f"plan does not add up to cost_usd {cost:,.2f}"
    if pure is not None and saving is not None and abs(pure - cost - saving) > slack:
        yield "saving_usd is not best_pure_usd less cost_usd"


def _broken_sides(tco: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an ownership lacks: one of its sides, a figure that all else rests on, cells of its grid."""
    names = [row["name"] for row in tco["options"]]
    yield from (f"options lacks {side}" for side in _SIDES if side not in names)
    if [row["side"] for row in tco["by_utilisation"]] != [*_SIDES] * (len(tco["by_utilisation"]) // 2):
        yield "by_utilisation does not hold own and rent in turn"
    given, grid = {row["name"]: row["value"] for row in tco["assumptions"]}, tco["two_way"]
    lacks = [name for name in ("months", "gpus") if not _is_figure(given.get(name))]
    yield from (f"assumptions holds no figure of {name}" for name in lacks)
    if [len(row) for row in grid["saving_usd"]] != [len(grid["x_values"])] * len(grid["y_values"]):
        yield "two_way.saving_usd is no grid of x_values and y_values"


def _at(value: Any, names: Sequence[str], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of a key, of each row of the lists on the way."""
    if isinstance(value, list) and names:
        for number, row in enumerate(value):
            yield from _at(row, names, f"{where}[{number}]")
    elif names:
        inner = value.get(names[0], _MISSING) if isinstance(value, dict) else _MISSING
        yield from _at(inner, names[1:], f"{where}.{names[0]}" if where else names[0])
    else:
        yield where, value


def _is_figure(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= 0


_MISSING, _UNLIKE = object(), "has rows that are unlike each other"
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {  # what rules.csv says of a key: how it is kept, and in words
    "there": (lambda value: value is not _MISSING, ""),
    "filled": (lambda rows: rows is not _MISSING and bool(rows), "holds nothing"),
    "figure": (_is_figure, "is {}, which cannot be: it is 0 or more"),
    "positive": (lambda value: _is_figure(value) and value > _LEAST, "is {}, which cannot be: it is above 0"),
    "alike": (lambda rows: not isinstance(rows, list) or len({tuple(sorted(row)) for row in rows}) < 2, _UNLIKE),
}


def _contrary(line: Mapping[str, Any]) -> bool:
    """Tell whether a line's cost by the hour and its present value, of which it is a share, have opposite signs."""
    both = line["levelised_usd_per_gpu_hour"], line.get("npv_usd")
    return all(isinstance(one, (int, float)) for one in both) and both[0] * both[1] < 0


def _disordered(record: Mapping[str, Any]) -> str | None:
    """Return the first figure of a record that lies outside its own range."""
    for low, value in record.items():
        if ("_low" not in low and low != "low") or "_at_" in low or "regret" in low:  # what comes of an end of an input
            continue
        name = low.replace("_low", "") if low != "low" else "value"
        ends = (value, record.get(name, value), record.get(low.replace("low", "high")))
        if all(isinstance(one, (int, float)) for one in ends):
            slack = 1e-9 * max(map(abs, ends))
            if not ends[0] - slack <= ends[1] <= ends[2] + slack:
                return name
    return None


def _mispriced(line: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the cost of a line of a bill: it is quantity × unit price, to the cent."""
    factors = [line.get(name) for name in ("quantity", "unit_price_usd", "cost_usd")]
    if not all(isinstance(one, (int, float)) for one in factors):
        return None
    quantity, price, cost = cast(list[float], factors)
    found = quantity * price
    fits = quantity >= 0 and isclose(found, cost, rel_tol=1e-6, abs_tol=0.006)
    return None if fits else f"the line {shown(line.get('name'))} costs {cost:,.2f}, not {quantity:g} × {price:g} USD"


def unsummed(record: Mapping[str, Any]) -> float | None:
    """Return what the lines of a bill add up to, where that is not its total."""
    total, lines = record.get("cost_usd"), record.get("lines")
    if not isinstance(total, (int, float)) or not isinstance(lines, list) or not lines:
        return None
    costs: list[Any] = [line.get("cost_usd") for line in lines if isinstance(line, dict)]
    if not all(isinstance(cost, (int, float)) for cost in costs):
        return None
    return None if isclose(fsum(costs), total, rel_tol=1e-9, abs_tol=0.005 * len(costs)) else fsum(costs)


def _records(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every record of an answer, however deep, with the key that holds it, but of what stands apart."""
    waiting = [("", value)]
    while waiting:
        where, item = waiting.pop()
        if isinstance(item, dict):
            yield where, item
            waiting += ((f"{where}.{name}", inner) for name, inner in item.items() if name not in _APART)
        elif isinstance(item, list):
            waiting += ((where, inner) for inner in item)


def _is_day(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def read_estimate(path: str | Path, changed: bool = False) -> Estimate:
    """Read a saved estimate, one that was `changed` too."""
    payload = read_answer(path, changed)
    if payload["kind"] != "estimate":
        raise UsageError(
            f"{str(path)!r} holds an answer of kind {payload['kind']}, not an estimate saved with --format json."
        )
    return cast(Estimate, payload)
