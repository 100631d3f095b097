"""A plan: every input of a comparison by name, with value, range, status and source; profiles, tax regimes, use."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from gpucost.answers.ownership import AssumptionRow
from gpucost.arguments.files import files_beside, names_file
from gpucost.arguments.kinds import (
    DATE,
    FILE,
    LARGEST_NUMBER,
    USD,
    USE_PATH,
    WEEKS,
    Kind,
    named,
    one_of,
    plain,
    share,
    whole,
)
from gpucost.arguments.signature import argument_of
from gpucost.arguments.vocabulary import Years
from gpucost.errors import UnknownNameError, UsageError, nearest
from gpucost.gate import read_toml
from gpucost.market.exchange import usd_per_unit
from gpucost.money import price_paths
from gpucost.options import OPTIONS
from gpucost.schemas import typed
from gpucost.types import Accelerator, Status
from gpucost.units import (
    DAYS_PER_YEAR,
    MONTHS_PER_YEAR,
    as_toml,
    counted,
    parse_count,
    parse_fraction,
    share_in,
    suffix_of,
    without_commas,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from gpucost.catalog import Catalog


# --- What a plan says beside its inputs, read once by typed models: special names, supplies, lists by year,
# scenarios.

Kinds = tuple[tuple[str, Kind], ...]  # of arguments by their names

FILES: Kinds = (("rent_curve", FILE), ("currency_curve", FILE), ("use_path", USE_PATH))  # among what a plan may say
_LONGEST_LIST = 1200  # months of a century
_CHANGEABLE: Kinds = (  # arguments that a scenario of a plan may change, too
    ("years", argument_of("years", Years).kind),
    ("utilisation", share()),
    ("lead_time_weeks", WEEKS),
)


# The models are made once, when the first plan is read: making one takes longer than to read by it.
@cache
def _supply() -> "type[BaseModel]":
    model: type[BaseModel] = typed.record(
        "Supply",
        name=typed.read_by(named().read),
        kind=(Literal[tuple(OPTIONS)], ...),
        **dict.fromkeys(
            (
                "usd_per_gpu_hour",
                "usd_per_gpu_month",
                "price_per_gpu_hour",
                "price_per_gpu_month",
                "upfront_per_gpu",
                "renewal_usd_per_gpu_hour",
            ),
            typed.read_by(USD.read),
        ),
        currency=typed.read_by(lambda value, label: named().read(str(value).strip().upper(), label)),
        until=typed.read_by(DATE.read),
        valid_until=typed.read_by(DATE.read),
        term_months=typed.read_by(whole(0, 1200).read),
        max_gpus=typed.read_by(plain(0, 1e9).read),
        max_share_fraction=typed.read_by(share().read),
        unit_gpus=typed.read_by(plain(1e-3, 1e6).read),
        lead_time_months=typed.read_by(whole(0, 1200).read),
        upfront_fraction=typed.read_by(share().read),
        stretch_ratio=typed.read_by(plain(1, 1000).read),
        note=typed.text(100_000),
        source_id=typed.text(),
    )
    return model


@cache
def _plan(arguments: Kinds) -> "type[BaseModel]":
    """Return the model of what stands beside the inputs, each as the argument of the same name, else as its kind."""
    by_year = typed.list_of(typed.read_by(share().read), _LONGEST_LIST, 1)
    tables = typed.list_of(dict[str, Any], _LONGEST_LIST)
    kinds = {
        **{name: typed.read_by(kind.read) for name, kind in arguments},
        "refresh_year": typed.read_by(plain(0, 100).read),
        "resale_path": typed.read_by(one_of("shipped", "forward").read),
        "usd_per_unit": typed.read_by(USD.read),
        "usd_per_unit_on": typed.read_by(DATE.read),
        "currency_wacc_fraction": typed.read_by(share().read),
        "fiscal_year_end_month": typed.read_by(whole(1, 12).read),
        "start_on": typed.read_by(DATE.read),
        "currency_curve": typed.read_by(FILE.read),
        "rent_residual_correlation": typed.read_by(share(1.0, -1.0).read),
        **dict.fromkeys(("residual_by_year", "residual_curve", "assessed_by_year", "depreciation_by_year"), by_year),
        "supply": typed.list_of(_supply(), _LONGEST_LIST),
        **dict.fromkeys(("rent_options", "parts"), tables),
        "scenarios": dict[str, dict[str, Any]],
    }
    model: type[BaseModel] = typed.record("Plan", unknown="allow", **kinds)
    return model


@cache
def _ranged() -> "type[BaseModel]":
    model: type[BaseModel] = typed.record(
        "Input",
        value=(Any, ...),
        low=Any,
        high=Any,
        source=typed.text(100_000),
        unit=typed.text(),
        note=typed.text(100_000),
    )
    return model


def special_value(key: str, value: Any, origin: str, arguments: Kinds = _CHANGEABLE) -> Any:
    """Read what a plan says under a special name; `arguments` are the kinds of those that bear the name of one."""
    return typed.validated(_plan(arguments), {key: value}, origin)[key]


def ranged(entry: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Read an input given as a table of value, low, high and source."""
    return typed.validated(_ranged(), entry, origin)


# --- A plan: every input of a comparison by name, with its value, range, status and source, from a file, flags and
# facts.
#
# A plan file is TOML. Its sections are for the reader: a name may stand in any of them, or in none.
#
#     [scope]
#     gpus = 64
#     utilisation_fraction = "70%"
#     server_usd = {value = 280000, low = 255000, high = 297000, source = "our quote of 2026-10-01"}

Array = NDArray[np.float64]

WEEKS_PER_MONTH = DAYS_PER_YEAR / MONTHS_PER_YEAR / 7
_TIERS = ("network_1tier_usd_per_gpu", "network_2tier_usd_per_gpu", "network_3tier_usd_per_gpu")

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
    "resale_path",
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
_CONVENIENT = ("years", "utilisation", "lead_time_weeks", "refresh_year")  # of these what a scenario may change, too
_ESTIMATE = "gpucost-estimate"  # sources that begin so are our own judgement: assumed, however well argued
_MUST_COST = ("server_usd", "all_in_usd_per_gpu", "gpu_usd", "rent_usd_per_gpu_hour")  # nothing is free
_SHARES = ("fraction", "ratio")
_WHOLE_MONTHS = "rent_term_months"  # the contract of a term ends with a month


class Assumption(Struct, frozen=True):
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
        return cast(AssumptionRow, asdict(self))


class Given(Struct, frozen=True):
    """What a person gave: a value, and where they gave one, a range and a source."""

    value: Any
    low: Any = None
    high: Any = None
    source: str = ""
    status: Status = "given"


class PlanFile(Struct):
    """A plan as it was written: given inputs, special names, scenarios and further rent options."""

    inputs: dict[str, Given] = field(default_factory=dict)
    special: dict[str, Any] = field(default_factory=dict)
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)
    rent_options: list[dict[str, Any]] = field(default_factory=list)
    origin: str = "plan"  # what an error calls it


def read_plan(path: str | Path, names: Iterable[str], arguments: Kinds) -> PlanFile:
    """Read a plan file, its own files beside it; a name that is no input is refused with the nearest ones."""
    kinds = {**dict(arguments), **dict(FILES)}
    content = files_beside(read_toml(path), Path(path).parent, kinds, kinds)
    return plan_from_mapping(content, names, arguments, str(path))


def plan_from_mapping(
    content: Mapping[str, Any], names: Iterable[str], arguments: Kinds, origin: str = "plan"
) -> PlanFile:
    """Sort the entries of a plan into inputs, special names, scenarios and rent options."""
    input_names = set(names)
    plan = PlanFile(origin=origin)
    _sort(content, input_names, plan, arguments, origin)
    once(plan.inputs, plan.special, origin)
    return plan


def once(inputs: Mapping[str, Any], special: Mapping[str, Any], origin: str) -> None:
    """Refuse an input that a special name states, too; beside a curve of rents stands how the rent moves."""
    for name, value in special.items():
        if name != "rent_curve":
            _once(inputs, special_inputs({name: value}), origin, name)


def _once(entries: Mapping[str, Any], new: Iterable[str], origin: str, synonym: str = "") -> None:
    """Refuse what is stated again, under its own name or under one that means the same."""
    for name in new:
        if name in entries:
            raise UsageError(f"{origin}: {name} is given twice{f', also by {synonym}' if synonym else ''}. Keep one.")


def _sort(content: Mapping[str, Any], input_names: set[str], plan: PlanFile, arguments: Kinds, origin: str) -> None:
    for key, value in content.items():
        name = str(key)
        if name == "scenarios":
            values = special_value(name, value, origin)
            _once(plan.scenarios, values, origin)
            plan.scenarios.update(values)
        elif name == "rent_options":
            plan.rent_options.extend(special_value(name, value, origin))
        elif name in SPECIAL:
            _once(plan.special, [name], origin)
            plan.special[name] = special_value(name, value, origin, arguments)
        elif name in input_names:
            _once(plan.inputs, [name], origin)
            plan.inputs[name] = as_given(value, f"{origin}:{name}")
        elif isinstance(value, Mapping):
            _sort(value, input_names, plan, arguments, origin)
        else:
            raise unknown_input(name, input_names, origin)


def changes_of(entries: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Return what a scenario changes under the names of inputs; convenient names are read as at a plan's top."""
    special = {name: special_value(name, entries[name], origin) for name in _CONVENIENT if name in entries}
    changes = {name: value for name, value in entries.items() if name not in special}
    once(changes, special, origin)
    return changes | {name: given.value for name, given in special_inputs(special).items()}


def unknown_input(
    name: str, input_names: Iterable[str], origin: str, special_names: Iterable[str] = SPECIAL
) -> UnknownNameError:
    """Return the error for a name that is no input."""
    listed = [*input_names, *special_names]
    # a part of a name is near all that hold it, however much longer they are
    near = [entry for entry in listed if name and name in entry] or nearest(name, listed, 3)
    return UnknownNameError("input", name, near, f"{origin}: `gpucost tco --print-plan` lists every name.")


def as_given(value: Any, origin: str = "an input") -> Given:
    """Read a plain value, or a table of value, low, high and source."""
    if isinstance(value, Given):
        return value
    if isinstance(value, Mapping):
        read = ranged(value, origin)
        return Given(read["value"], read.get("low"), read.get("high"), read.get("source") or "")
    return Given(value)


class InputCondition(Struct, frozen=True):
    """The input that decides whether another one counts, and the words of it under which it does."""

    input: str
    choices: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.input}={'|'.join(self.choices)}"


class Registry:
    """The inputs that exist, with their defaults from the catalog's facts, their words, and when they count."""

    def __init__(self, catalog: "Catalog") -> None:
        self.inputs = {row["name"]: row for row in catalog.rows("plan_inputs")}
        self.facts = {row["item"]: row for row in (*catalog.rows("ownership"), *catalog.rows("energy"))}
        self.choices: dict[str, tuple[str, ...]] = {}
        for row in catalog.rows("plan_choices"):
            self.choices[row["name"]] = (*self.choices.get(row["name"], ()), row["choice"])
        self.conditions: dict[str, InputCondition] = {}
        for row in catalog.rows("plan_conditions"):
            earlier = self.conditions.get(row["name"])
            choices = earlier.choices if earlier else ()
            self.conditions[row["name"]] = InputCondition(row["input"], (*choices, row["choice"]))

    @cached_property
    def defaults(self) -> Mapping[str, "Assumption"]:
        """Every input by its default."""
        return {name: self.default(name) for name in self.inputs}

    @property
    def names(self) -> tuple[str, ...]:
        """Return every input's name."""
        return tuple(self.inputs)

    def fact(self, item: str) -> Mapping[str, Any]:
        """Return the row of an item; an unknown item is an error of the data."""
        if item not in self.facts:
            near = nearest(item, self.facts, 3, 0.5)
            raise UnknownNameError("ownership item", item, near)
        return self.facts[item]

    def _empty(self, name: str) -> Assumption:
        entry = self.inputs[name]
        return Assumption(name, None, unit=entry["unit"] or "", group=entry["group"], description=entry["description"])

    def sourced(self, name: str, item: str = "") -> Assumption:
        """Return an input as its fact states it."""
        row = self.fact(item or self.inputs[name]["item"])
        status: Status = "assumed" if row["source_id"].startswith(_ESTIMATE) else "sourced"
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
        value = entry["value"] if entry["value"] is None or name in self.choices else float(entry["value"])
        return replace(self._empty(name), value=value, low=entry["low"], high=entry["high"])

    def read(self, name: str, given: Given, origin: str = "input") -> Assumption:
        """Return an input as given, checked; without a range it is certain, and the value is the end left out."""
        parts = {key: self.number(name, getattr(given, key), origin) for key in ("value", "low", "high")}
        read = replace(self.defaults[name], status=given.status, note=given.source, observed="")
        if name in self.choices:
            return replace(read, value=parts["value"], low=None, high=None)
        value, low, high = parts["value"], parts["low"], parts["high"]
        if name == _WHOLE_MONTHS and low != high:
            raise UsageError(
                f"{origin}: {name} is a whole number of months and takes no range; leave low and high out."
            )
        # An end that is left out is the value itself: certain to that side.
        if low is not None or high is not None:
            low, high = value if low is None else low, value if high is None else high
        if low is not None and not low <= value <= high:
            raise UsageError(f"{origin}: {name} = {value:g} lies outside its own range {low:g} to {high:g}.")
        return replace(read, value=value, low=low, high=high, source_id="")

    def number(self, name: str, value: Any, origin: str) -> Any:
        """Read one value of an input: a word of its choices, or a number within its limits."""
        if name not in self.inputs:
            raise unknown_input(name, self.inputs, origin, _CONVENIENT)
        entry = self.inputs[name]
        if value is None:
            return None
        if name in self.choices:
            if str(value) not in self.choices[name]:
                raise UsageError(f"{origin}: {name} = {value!r} is not one of {', '.join(self.choices[name])}.")
            return str(value)
        # 0.7, "70%", "$35k" or "1,200"; a per cent is a share's alone, a dollar an amount's
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise UsageError(f"{origin}: {name} = {value!r} is not a number.")
        is_share = suffix_of(name) in _SHARES
        text = None
        if isinstance(value, str):
            bare = value.strip()
            is_strange = ("%" in bare and not is_share) or ("$" in bare and "usd" not in name)
            text = "" if is_strange else without_commas(bare.lstrip("$"), f"{origin}: {name}")
        try:
            if text is None:
                number = float(value)
            else:
                with_letter = text[-1:].isalpha() and text[:1].isdigit()
                number = parse_count(text) if with_letter else share_in(text)
        except (ValueError, UsageError):
            example = "0.7 or 70%" if is_share else "0.7 or 35k"
            raise UsageError(f"{origin}: {name} = {value!r} is not a number. Write {example}.") from None
        if not abs(number) <= LARGEST_NUMBER:
            raise UsageError(f"{origin}: {name} = {value!r} is not a finite number within {LARGEST_NUMBER:,.0f}.")
        low, high = entry["minimum"], entry["maximum"]
        if (low is not None and number < low) or (high is not None and number > high):
            limits = f"{low:g} to {high:g}" if high is not None else f"at least {low:g}"
            raise UsageError(f"{origin}: {name} = {value!r} is outside what is possible ({limits}).")
        if name == _WHOLE_MONTHS and number % 1:
            raise UsageError(f"{origin}: {name} = {value!r} is not a whole number of months.")
        if number <= 0 and (name.endswith("_years") or name in _MUST_COST):
            raise UsageError(f"{origin}: {name} = {value!r} must be positive.")
        return number


def resolve_choices(registry: Registry, entries: dict[str, Given]) -> tuple[dict[str, Given], list[str]]:
    """Let a given input choose its own alternative; two of one group, or one that cannot count, are told apart.

    Of the alternatives in an exclusive group one counts: giving `network_fraction` alone selects it, giving it together
    with `network_1tier_usd_per_gpu` is an error unless `network_basis` says which one.
    """
    chosen, warnings = dict(entries), []
    choices: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for name in entries:
        if condition := registry.conditions.get(name):
            choices.setdefault(condition.input, {}).setdefault(condition.choices, []).append(name)
    for choice, options in choices.items():
        if choice in entries:
            active = str(entries[choice].value)
            ignored = [name for choices_of, members in options.items() if active not in choices_of for name in members]
            if ignored:
                warnings.append(f"{', '.join(ignored)}: given, but {choice} = {active}, so it does not count")
        elif len(options) > 1:
            listed = " and ".join(members[0] for members in options.values())
            alternatives = " | ".join(word for choices_of in options for word in choices_of)
            raise UsageError(f"{listed} exclude each other. Keep one, or choose with {choice} = {alternatives}.")
        else:
            (choices_of,) = options
            chosen[choice] = Given(choices_of[0])
    return chosen, warnings


def special_inputs(special: Mapping[str, Any]) -> dict[str, Given]:
    """Turn the convenient names into inputs: years, utilisation, lead_time_weeks, rent_path, network_usd_per_gpu."""
    inputs: dict[str, Given] = {}
    if "years" in special:
        inputs["months"] = Given(special["years"] * MONTHS_PER_YEAR)
    if "utilisation" in special:
        inputs["utilisation_fraction"] = Given(special["utilisation"])
    if "lead_time_weeks" in special:
        inputs["lead_time_months"] = Given(special["lead_time_weeks"] / WEEKS_PER_MONTH)
    if "refresh_year" in special:
        inputs["refresh_month"] = Given(special["refresh_year"] * MONTHS_PER_YEAR)
    if path := special.get("rent_path") or ("curve" if special.get("rent_curve") else None):
        inputs["rent_path_basis"] = Given("flat" if path == "decline" else path)
    if "network_usd_per_gpu" in special:
        inputs.update({name: as_given(special["network_usd_per_gpu"]) for name in _TIERS})
    return inputs


def mark_counting(registry: Registry, assumptions: dict[str, Assumption]) -> None:
    """Mark the inputs whose alternative was chosen instead."""
    for name, assumption in list(assumptions.items()):
        if condition := registry.conditions.get(name):
            counts = str(assumptions[condition.input].value) in condition.choices
            assumptions[name] = replace(assumption, counts=counts)


# --- The effective inputs of a comparison as a plan file: reading it back gives the same answer.

_SETTINGS = (
    "gpu",
    "provider",
    "region",
    "option",
    "rent_curve",
    "currency",
    "usd_per_unit",
    "usd_per_unit_on",
    "currency_curve",
    "currency_wacc_fraction",
    "fiscal_year_end_month",
    "seed",
    "draws",
    "electricity_region",
    "grid_region",
    "start_on",
    "rent_residual_correlation",
    "depreciation_by_year",
    "profile",
    "site",
    "use_path",
)


def write_plan(
    assumptions: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], tables: Mapping[str, Sequence[float]]
) -> str:
    """Write every input with its value, range, unit and source; what does not count is a comment."""
    lines = [
        "# Inputs of `gpucost tco`, as they took effect. Change any value; a table gives a range for the Monte Carlo:",
        '#   pue_ratio = {value = 1.25, low = 1.2, high = 1.4, source = "our contract"}',
        "",
    ]
    for name in _SETTINGS:
        setting, kind = settings.get(name), dict(FILES).get(name)
        if setting is None:
            continue
        if kind and names_file(kind, setting) and os.path.dirname(setting):
            setting = os.path.abspath(setting)  # a file in another folder, wherever the plan is written
        lines.append(f"{name} = {as_toml(setting)}")
    # Trailing zeros are what a shorter list means anyway.
    resale = [round(value, 6) for value in tables["residual_by_year"][1:]]
    while resale and resale[-1] == 0:
        resale.pop()
    lines += [
        "",
        "# resale value ÷ price at the end of year 1, 2 …; assessed share for property tax",
        f"residual_by_year = {resale}",
    ]
    lines += [f"assessed_by_year = {list(tables['assessed_by_year'])}"]
    for group in dict.fromkeys(entry["group"] for entry in assumptions):
        lines += ["", f"[{group}]"]
        for entry in assumptions:
            if entry["group"] != group:
                continue
            unit = f" [{entry['unit']}]" if entry["unit"] else ""
            source = entry["source_id"] or entry["note"]
            note = f"{entry['description']}{unit}; {entry['status']}{f' ({source})' if source else ''}"
            comment = f"  # {note}".replace("\n", " ")
            value, low, high = entry["value"], entry["low"], entry["high"]
            if value is None:
                lines.append(f"# {entry['name']} ={comment}")
                continue
            text = as_toml(value)
            if low is not None and high is not None and low <= value <= high:
                text = f"{{value = {text}, low = {as_toml(low)}, high = {as_toml(high)}}}"
            lines.append(f"{'' if entry['counts'] else '# '}{entry['name']} = {text}{comment}")
    for name, entries in settings["scenarios"].items():
        lines += ["", f"[scenarios.{as_toml(name)}]", *(f"{key} = {as_toml(value)}" for key, value in entries.items())]
    for option in settings["rent_options"]:
        lines += ["", "[[rent_options]]", *(f"{key} = {as_toml(value)}" for key, value in option.items())]
    return "\n".join(lines) + "\n"


# --- Where a cluster of some size usually stands and who runs it: other defaults than those of a data centre.

# Assumed: what stands under a desk or in a room of its own needs no fee, tier of network, storage system, contract or
# staff beyond a share of somebody's time, but broken parts are replaced; renting as little needs no people either.
_SMALL: dict[str, float | str] = {
    "facility_basis": "none",
    "storage_basis": "none",
    "spares_basis": "maintenance",
    "control_plane_fraction": 0.0,
    "rent_control_plane_usd_per_month": 0.0,
    "rent_staff_ratio": 0.0,
    "support_fraction": 0.0,
    "insurance_fraction": 0.0,
    "property_tax_fraction": 0.0,
    "installation_fraction": 0.0,
}
_STEP = {"staff_step_fte": 0.25}  # nobody shares an engineer by the hour
PROFILES: dict[str, dict[str, float | str]] = {
    "desk": {**_SMALL, "pue_ratio": 1.0, "staff_minimum_fte": 0.0, "staff_fte_per_1000_gpus": 0.0},
    "lab": {**_SMALL, "pue_ratio": 1.4, "staff_minimum_fte": 0.1},
    "colocation": {**_STEP},
    "own": {**_STEP, "facility_basis": "own"},
}
# a single server takes a quarter of somebody, the low end of what small clusters need; one that is rented takes nobody
_ONE_SERVER: dict[str, float | str] = {"staff_minimum_fte": 0.25, "rent_staff_ratio": 0.0}
DESK_GPUS, LAB_GPUS = 4, 16  # cards of workstations; anything else stands in a data centre
_OWN_CENTRE_GPUS = 16_384  # some 20 MW: beyond what is let by the cabinet or hall
_WORKSTATION = ("RTX", "RADEON")


def _usual_profile(accelerator: Accelerator, gpus: float) -> str:
    """Return the profile of a size: a few cards of workstations at a desk, some in a room, all else in colocation."""
    if gpus <= LAB_GPUS and any(word in accelerator.name.upper() for word in _WORKSTATION):
        return "desk" if gpus <= DESK_GPUS else "lab"
    return "colocation" if gpus < _OWN_CENTRE_GPUS else "own"


def same_profile_gpus(accelerator: Accelerator, gpus: float, node: float) -> tuple[float, float | None]:
    """Return the smallest and the largest number of GPUs that has the usual profile of a size; None is no limit."""
    name = _usual_profile(accelerator, gpus)
    if name in ("desk", "lab"):
        return (1.0, float(DESK_GPUS)) if name == "desk" else (DESK_GPUS + 1.0, float(LAB_GPUS))
    if gpus <= node:
        return 1.0, node
    return (node + 1.0, _OWN_CENTRE_GPUS - 1.0) if name == "colocation" else (float(_OWN_CENTRE_GPUS), None)


def apply(defaults: dict[str, Assumption], profile: str | None, accelerator: Accelerator | None, gpus: float) -> str:
    """Put a profile's values in place of the defaults, as assumptions; return what must be said of it."""
    if profile is not None and profile not in PROFILES:
        raise UsageError(f"profile = {profile!r} is not one of {', '.join(PROFILES)}.")
    # The usual profile hangs on the form of the accelerator.
    if profile is None and accelerator is None:
        return "none, as no accelerator is named"
    name = profile or _usual_profile(accelerator, gpus) if accelerator else str(profile)
    values = dict(PROFILES[name])
    if name in ("colocation", "own") and gpus <= float(defaults["gpus_per_node"].value or 0):
        values |= _ONE_SERVER
    for key, value in values.items():
        defaults[key] = replace(
            defaults[key], value=value, low=None, high=None, status="assumed", source_id="", note=f"profile {name}"
        )
    listed = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())
    if profile:
        return f"{name} ({listed}), as requested"
    return f"{name} ({listed}), usual for {counted(gpus, 'GPU')} of this form; the profiles are {', '.join(PROFILES)}"


# --- Tax law and place as defaults: what a country deducts and carries forward, what a region charges.

# input -> items of the ownership table that a site may name, such as sales_tax.us_texas
SITE = {
    "colocation_usd_per_kw_month": "colocation",
    "sales_tax_fraction": "sales_tax",
    "property_tax_fraction": "property_tax",
}


def apply_regime(catalog: "Catalog", defaults: dict[str, Assumption], regime: str | None) -> list[float] | None:
    """Put a country's tax law in place of the defaults; return its depreciation by year."""
    if regime is None:
        return None
    rows = catalog.rows("tax_regimes")
    regimes = sorted({row["regime"] for row in rows})
    if regime.lower() not in regimes:
        raise UnknownNameError("tax regime", regime, regimes, f"There are {', '.join(regimes)}.")
    for row in rows:
        if row["regime"] == regime.lower():
            usd = usd_per_unit(catalog, row["currency"]) if row["currency"] else 1.0
            name = "loss_allowance_usd" if row["name"] == "loss_allowance" else row["name"]
            defaults[name] = replace(
                defaults[name],
                value=row["value"] * usd,
                low=None,
                high=None,
                status="assumed" if row["source_id"].startswith(_ESTIMATE) else "sourced",
                source_id=row["source_id"],
                observed=row["observed"],
                note=row["notes"] or "",
            )
    source: dict[str, Any] = {"status": "given", "note": f"tax regime {regime.lower()}"}
    defaults["tax_basis"] = replace(defaults["tax_basis"], value="after", **source)
    deducted = [row for row in catalog.rows("tax_depreciation") if row["regime"] == regime.lower()]
    return [row["value_fraction"] for row in sorted(deducted, key=lambda row: row["year"])] or None


def apply_site(registry: Registry, defaults: dict[str, Assumption], site: str | None) -> list[str]:
    """Put what a site charges in place of the defaults; return in words what is not known of it."""
    if site is None:
        return []
    items = {name: f"{item}.{site}" for name, item in SITE.items() if f"{item}.{site}" in registry.facts}
    if not items:
        raise UnknownNameError("site", site, sites(registry.facts), f"There are {', '.join(sites(registry.facts))}.")
    for name, item in items.items():
        defaults[name] = registry.sourced(name, item)
    missing = [SITE[name].replace("_", " ") for name in SITE if name not in items]
    return [f"site {site}: no {' and no '.join(missing)} on record, so the usual one counts"] if missing else []


def sites(items: Iterable[str]) -> list[str]:
    """Return the sites of which colocation or taxes are on record."""
    # averages and kinds of contracts, which are no place
    usual = ("global_average", "hyperscale_ai_lease", "retail_cabinet", "us_wholesale_250_500kw")
    parted = (item.partition(".") for item in items)
    return sorted({site for item, _, site in parted if item in SITE.values() and site and site not in usual})


# --- What servers are worth by their age: the shipped curve or one's own, as far as a value is stated for an age.


def resale_by_year(
    registry: Registry,
    assumptions: Mapping[str, Assumption],
    special: Mapping[str, Any],
    scenarios: Mapping[str, Mapping[str, Any]],
) -> Array:
    """Return resale values by age; where one is given for an age beyond the last, the last holds until then."""
    shipped = [registry.fact(f"residual_value.year_{year}")["typical"] for year in range(1, 7)]
    anchors = special.get("residual_by_year") or special.get("residual_curve") or shipped
    at, basis = assumptions["residual_at_years"], assumptions["residual_basis"]
    # A fraction that is stated for an age scales the whole curve: the curve must be worth something at every such age,
    # that of a scenario included.
    scenario_changes = [changes_of(entries, f"scenario {name}") for name, entries in scenarios.items()]
    if "given" not in (basis.value, *(changes.get(basis.name) for changes in scenario_changes)):
        return price_paths.curve(anchors[: price_paths.TABLE_YEARS])
    stated = [at.value, at.low, at.high, *(changes.get(at.name) for changes in scenario_changes)]
    ages = [registry.number(at.name, age, "scenarios") for age in stated if age is not None]
    if basis.value == "given":
        anchors = [*anchors, *[anchors[-1]] * (ceil(max(ages)) - len(anchors))]  # none where the curve is longer
    table = price_paths.curve(anchors[: price_paths.TABLE_YEARS])
    if worthless := [age for age in ages if price_paths.value_at(table, age) <= 0]:
        raise UsageError(
            f"residual_fraction: the resale values by year are zero at {worthless[0]:g} years, and no factor turns zero"
            " into another value. Give residual_by_year with the value at that age, or leave residual_fraction out."
        )
    return table


# --- How the use of a cluster moves: a ramp, seasons and steps, as shares of the stated utilisation by month.

_MONTHS = whole(1, 1200)

HOW = (
    "Write parts as ramp 20% over 6 months; from month 25: 120%; seasons 80% 90% … (12 shares, from the first month); "
    "or name a CSV with the columns month and use."
)


def use_by_month(text: str | None, months: int, folder: Path = Path()) -> Array:
    """Return the path: parts multiply, and what nothing is said of is the stated utilisation.

    >>> use_by_month("ramp 50% over 2 months; from month 4: 120%", 5).tolist()
    [0.5, 0.75, 1.0, 1.2, 1.2]
    """
    path = np.ones(months)
    if text is None:
        return path
    if Path(text).suffix.lower() == ".csv":
        return price_paths.read_curve(folder / text, months, "use")
    month = np.arange(months)
    parts = [part.strip().lower() for part in text.split(";") if part.strip()]
    for part in parts or [text]:
        if ramp := re.fullmatch(r"ramp (?:from )?(\S+) over (\d+) months?", part):
            start, length = _share(ramp[1]), _MONTHS.read(ramp[2], "use_path")
            path *= start + (1 - start) * np.minimum(month / length, 1)
        elif step := re.fullmatch(r"from month (\d+):? (\S+)", part):
            path[_MONTHS.read(step[1], "use_path") - 1 :] *= _share(step[2])
        elif seasons := re.fullmatch(r"seasons((?: \S+){12})", part):
            path *= np.array([_share(share) for share in seasons[1].split()])[month % 12]
        else:
            raise UsageError(f"use_path: cannot read {part[:60]!r}. {HOW}")
    return path


def _share(text: str) -> float:
    """Read a share of the stated utilisation, which may be beyond it."""
    number = share_in(text) if re.fullmatch(r"\d+(\.\d+)?%", text) else parse_fraction(text, "use_path")
    if not 0 <= number <= 100:
        raise UsageError(f"use_path: {text[:20]!r} is not a share of the stated utilisation.")
    return number
