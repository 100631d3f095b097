"""A plan: every input of a comparison by name, with its value, range, status and source, from a file, flags and facts.

A plan file is TOML. Its sections are for the reader: a name may stand in any of them, or in none.

    [scope]
    gpus = 64
    utilisation_fraction = "70%"
    server_usd = {value = 280000, low = 255000, high = 297000, source = "our quote of 2026-10-01"}
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpucost.answers.ownership import Assumption as AssumptionRow
from gpucost.arguments.files import files_beside
from gpucost.arguments.kinds import LARGEST_NUMBER
from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import read_toml
from gpucost.ownership.given import ranged
from gpucost.ownership.given import special as read_special
from gpucost.types import Status
from gpucost.units import DAYS_PER_YEAR, MONTHS_PER_YEAR, parse_count, share_in, suffix_of, without_commas

Array = NDArray[np.float64]

WEEKS_PER_MONTH = DAYS_PER_YEAR / MONTHS_PER_YEAR / 7
TIERS = ("network_1tier_usd_per_gpu", "network_2tier_usd_per_gpu", "network_3tier_usd_per_gpu")

# Names beside the inputs: what else a plan file may hold.
SPECIAL = (
    "gpu",
    "provider",
    "region",
    "option",
    "years",
    "lead_time_weeks",
    "refresh_year",
    "network_usd_per_gpu",
    "rent_path",
    "rent_curve",
    "residual_curve",
    "residual_by_year",
    "assessed_by_year",
    "depreciation_by_year",
    "electricity_region",
    "grid_region",
    "currency",
    "usd_per_unit",
    "usd_per_unit_on",
    "currency_curve",
    "currency_wacc_fraction",
    "fiscal_year_end_month",
    "rent_residual_correlation",
    "draws",
    "seed",
    "start_on",
    "model",
    "tokens",
    "runs_per_year",
    "tokens_per_month",
    "mfu",
    "step_time",
    "prompt_tokens",
    "output_tokens",
    "utilisation",
    "supply",
    "own",
    "budget_usd",
    "max_owned_gpus",
    "quote",
    "profile",
    "tax_regime",
    "site",
    "use_path",
    "refresh_gpu",
)
CONVENIENT = ("years", "utilisation", "lead_time_weeks", "refresh_year")  # of these what a scenario may change, too
OWN_ESTIMATE = "gpucost-estimate"  # sources that begin so are our own judgement: assumed, however well argued
MUST_COST = ("server_usd", "all_in_usd_per_gpu", "gpu_usd", "rent_usd_per_gpu_hour")  # nothing is free
_SHARES = ("fraction", "ratio")
_WHOLE_MONTHS = "rent_term_months"  # the contract of a term ends with a month


@dataclass(frozen=True, slots=True)
class Assumption:
    """One input as it entered a comparison."""

    name: str
    value: float | str | None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    status: Status = "assumed"
    source_id: str = ""
    group: str = ""
    description: str = ""
    counts: bool = True  # False where an alternative of the same group counts instead
    note: str = ""
    observed: str = ""  # when the value was seen

    def as_dict(self) -> AssumptionRow:
        """Return the assumption as JSON-able fields."""
        return cast(AssumptionRow, {name: getattr(self, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class Given:
    """What a person gave: a value, and where they gave one, a range and a source."""

    value: Any
    low: Any = None
    high: Any = None
    source: str = ""
    status: Status = "given"


@dataclass(slots=True)
class PlanFile:
    """A plan as it was written: given inputs, special names, scenarios and further rent options."""

    given: dict[str, Given] = field(default_factory=dict)
    special: dict[str, Any] = field(default_factory=dict)
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)
    rent_options: list[dict[str, Any]] = field(default_factory=list)
    where: str = "plan"  # what an error calls it


def read_plan(path: str | Path, names: Iterable[str]) -> PlanFile:
    """Read a plan file, its own files beside it; a name that is no input is refused with the nearest ones."""
    return plan_from_mapping(files_beside(read_toml(path), Path(path).parent), names, str(path))


def plan_from_mapping(content: Mapping[str, Any], names: Iterable[str], where: str = "plan") -> PlanFile:
    """Sort the entries of a plan into inputs, special names, scenarios and rent options."""
    known = set(names)
    plan = PlanFile(where=where)
    _sort(content, known, plan, where)
    once(plan.given, plan.special, where)
    return plan


def once(inputs: Mapping[str, Any], special: Mapping[str, Any], where: str) -> None:
    """Refuse an input that a special name says, too; beside a curve of rents stands how the rent moves."""
    for name, value in special.items():
        if name != "rent_curve":
            _once(inputs, special_inputs({name: value}), where, name)


def _once(have: Mapping[str, Any], new: Iterable[str], where: str, said: str = "") -> None:
    """Refuse what is said again, under its own name or under one that means the same."""
    for name in new:
        if name in have:
            raise UsageError(f"{where}: {name} is given twice{f', also by {said}' if said else ''}. Keep one.")


def _sort(content: Mapping[str, Any], known: set[str], plan: PlanFile, where: str) -> None:
    for key, value in content.items():
        name = str(key)
        if name == "scenarios":
            found = read_special(name, value, where)
            _once(plan.scenarios, found, where)
            plan.scenarios.update(found)
        elif name == "rent_options":
            plan.rent_options.extend(read_special(name, value, where))
        elif name in SPECIAL:
            _once(plan.special, [name], where)
            plan.special[name] = read_special(name, value, where)
        elif name in known:
            _once(plan.given, [name], where)
            plan.given[name] = as_given(value, f"{where}:{name}")
        elif isinstance(value, Mapping):
            _sort(value, known, plan, where)
        else:
            raise unknown_input(name, known, where)


def changes_of(entries: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what a scenario changes under the names of inputs; convenient names are read as at a plan's top."""
    special = {name: read_special(name, entries[name], where) for name in CONVENIENT if name in entries}
    found = {name: value for name, value in entries.items() if name not in special}
    once(found, special, where)
    return found | {name: given.value for name, given in special_inputs(special).items()}


def unknown_input(name: str, known: Iterable[str], where: str, beside: Iterable[str] = SPECIAL) -> UnknownNameError:
    """Return the error for a name that is no input."""
    listed = [*known, *beside]
    near = [entry for entry in listed if name and name in entry] or get_close_matches(name, listed, n=3, cutoff=0.6)
    return UnknownNameError("input", name, near, f"{where}: `gpucost tco --print-plan` lists every name.")


def as_given(value: Any, where: str = "an input") -> Given:
    """Read a plain value, or a table of value, low, high and source."""
    if isinstance(value, Given):
        return value
    if isinstance(value, Mapping):
        read = ranged(value, where)
        return Given(read["value"], read.get("low"), read.get("high"), read.get("source") or "")
    return Given(value)


class Registry:
    """The inputs that exist, with their defaults from the catalog's facts."""

    def __init__(self, inputs: list[dict[str, Any]], facts: Iterable[Mapping[str, Any]]) -> None:
        self.inputs = {row["name"]: row for row in inputs}
        self.facts = {row["item"]: row for row in facts}

    @property
    def names(self) -> tuple[str, ...]:
        """Return every input's name."""
        return tuple(self.inputs)

    def fact(self, item: str) -> Mapping[str, Any]:
        """Return the row of an item; an unknown item is an error of the data."""
        if item not in self.facts:
            near = get_close_matches(item, self.facts, n=3, cutoff=0.5)
            raise UnknownNameError("ownership item", item, near)
        return self.facts[item]

    def _empty(self, name: str) -> Assumption:
        entry = self.inputs[name]
        return Assumption(name, None, unit=entry["unit"] or "", group=entry["group"], description=entry["description"])

    def sourced(self, name: str, item: str = "") -> Assumption:
        """Return an input as its fact states it."""
        row = self.fact(item or self.inputs[name]["item"])
        status: Status = "assumed" if row["source_id"].startswith(OWN_ESTIMATE) else "sourced"
        return replace(
            self._empty(name),
            value=row["typical"],
            low=row["low"],
            high=row["high"],
            status=status,
            source_id=row["source_id"],
            note=row["item"],
            observed=str(row.get("observed") or ""),
        )

    def default(self, name: str) -> Assumption:
        """Return an input's default: from its fact, else the stated assumption, else nothing yet."""
        entry = self.inputs[name]
        if entry["item"]:
            return self.sourced(name)
        value = entry["value"] if entry["value"] is None or entry["choices"] else float(entry["value"])
        return replace(self._empty(name), value=value, low=entry["low"], high=entry["high"])

    def read(self, name: str, given: Given, where: str = "input") -> Assumption:
        """Return an input as given, checked; without a range it is certain, and the value is the end left out."""
        entry = self.inputs[name]
        parts = {key: self.number(name, getattr(given, key), where) for key in ("value", "low", "high")}
        read = replace(self.default(name), status=given.status, note=given.source, observed="")
        if entry["choices"]:
            return replace(read, value=parts["value"], low=None, high=None)
        value, low, high = parts["value"], parts["low"], parts["high"]
        if name == _WHOLE_MONTHS and low != high:
            raise UsageError(f"{where}: {name} is a whole number of months and takes no range; leave low and high out.")
        if low is not None or high is not None:
            low, high = value if low is None else low, value if high is None else high
        if low is not None and not low <= value <= high:
            raise UsageError(f"{where}: {name} = {value:g} lies outside its own range {low:g} to {high:g}.")
        return replace(read, value=value, low=low, high=high, source_id="")

    def number(self, name: str, value: Any, where: str) -> Any:
        """Read one value of an input: a word of its choices, or a number within its limits."""
        if name not in self.inputs:
            raise unknown_input(name, self.inputs, where, CONVENIENT)
        entry = self.inputs[name]
        if value is None:
            return None
        if entry["choices"]:
            return _choice(name, value, entry["choices"].split("|"), where)
        number = _number(name, value, where)
        low, high = entry["minimum"], entry["maximum"]
        if (low is not None and number < low) or (high is not None and number > high):
            limits = f"{low:g} to {high:g}" if high is not None else f"at least {low:g}"
            raise UsageError(f"{where}: {name} = {value!r} is outside what is possible ({limits}).")
        if name == _WHOLE_MONTHS and number % 1:
            raise UsageError(f"{where}: {name} = {value!r} is no whole number of months.")
        if number <= 0 and (name.endswith("_years") or name in MUST_COST):
            raise UsageError(f"{where}: {name} = {value!r} must be positive.")
        return number


def _choice(name: str, value: Any, choices: list[str], where: str) -> str:
    if str(value) not in choices:
        raise UsageError(f"{where}: {name} = {value!r} is none of {', '.join(choices)}.")
    return str(value)


def _number(name: str, value: Any, where: str) -> float:
    """Read 0.7, "70%", "$35k" or "1,200"; a per cent is a share's alone, a dollar an amount's."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UsageError(f"{where}: {name} = {value!r} is not a number.")
    text = None
    if isinstance(value, str):
        bare = value.strip()
        strange = ("%" in bare and suffix_of(name) not in _SHARES) or ("$" in bare and "usd" not in name)
        text = "" if strange else without_commas(bare.lstrip("$"), f"{where}: {name}")
    try:
        number = float(value) if text is None else _from_text(text)
    except (ValueError, UsageError):
        example = "0.7 or 70%" if suffix_of(name) in _SHARES else "0.7 or 35k"
        raise UsageError(f"{where}: {name} = {value!r} is not a number. Write {example}.") from None
    if not abs(number) <= LARGEST_NUMBER:
        raise UsageError(f"{where}: {name} = {value!r} is not a finite number within {LARGEST_NUMBER:,.0f}.")
    return number


def _from_text(text: str) -> float:
    return parse_count(text) if text[-1:].isalpha() and text[:1].isdigit() else share_in(text)


def resolve_choices(registry: Registry, given: dict[str, Given]) -> tuple[dict[str, Given], list[str]]:
    """Let a given input choose its own alternative; two of one group, or one that cannot count, are told apart.

    Of the alternatives in an exclusive group one counts: giving `network_fraction` alone selects it, giving it together
    with `network_1tier_usd_per_gpu` is an error unless `network_basis` says which one.
    """
    chosen, warnings = dict(given), []
    wanted: dict[str, dict[str, list[str]]] = {}
    for name in given:
        choice, _, word = (registry.inputs[name]["counts_when"] or "").partition("=")
        if choice:
            wanted.setdefault(choice, {}).setdefault(word, []).append(name)
    for choice, words in wanted.items():
        if choice in given:
            active = str(given[choice].value)
            ignored = [name for word, members in words.items() if active not in word.split("|") for name in members]
            if ignored:
                warnings.append(f"{', '.join(ignored)}: given, but {choice} = {active}, so it does not count")
        elif len(words) > 1:
            listed = " and ".join(members[0] for members in words.values())
            raise UsageError(f"{listed} exclude each other. Keep one, or choose with {choice} = {' | '.join(words)}.")
        else:
            chosen[choice] = Given(next(iter(words)).partition("|")[0])
    return chosen, warnings


def special_inputs(special: Mapping[str, Any]) -> dict[str, Given]:
    """Turn the convenient names into inputs: years, utilisation, lead_time_weeks, rent_path, network_usd_per_gpu."""
    found: dict[str, Given] = {}
    if "years" in special:
        found["months"] = Given(special["years"] * MONTHS_PER_YEAR)
    if "utilisation" in special:
        found["utilisation_fraction"] = Given(special["utilisation"])
    if "lead_time_weeks" in special:
        found["lead_time_months"] = Given(special["lead_time_weeks"] / WEEKS_PER_MONTH)
    if "refresh_year" in special:
        found["refresh_month"] = Given(special["refresh_year"] * MONTHS_PER_YEAR)
    if path := special.get("rent_path") or ("curve" if special.get("rent_curve") else None):
        found["rent_path_basis"] = Given("flat" if path == "decline" else path)
    if "network_usd_per_gpu" in special:
        found.update({name: as_given(special["network_usd_per_gpu"]) for name in TIERS})
    return found


def mark_counting(registry: Registry, assumptions: dict[str, Assumption]) -> None:
    """Mark the inputs whose alternative was chosen instead."""
    for name, assumption in list(assumptions.items()):
        choice, _, word = (registry.inputs[name]["counts_when"] or "").partition("=")
        if choice:
            assumptions[name] = replace(assumption, counts=str(assumptions[choice].value) in word.split("|"))
