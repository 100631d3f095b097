"""The live part of an answer: inputs and formulas of gpucost.money for training, serving and owning."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gpucost.errors import UsageError
from gpucost.formula.language import Input, Line, expand, names
from gpucost.formula.spreadsheet import ALL_MONTHS, PART, shortened
from gpucost.money import comparison
from gpucost.money import serving_bill as serving_bill
from gpucost.money import training_bill as training_bill
from gpucost.units import HOURS_PER_MONTH, unit_of

# --- Inputs and lines.

Value = float | str | None  # None is an input that nobody gave: an empty cell, which is not above zero


class LiveInput(Struct, frozen=True):
    """One cell that a person may change."""

    name: str
    value: Value
    unit: str = ""
    low: float | None = None
    high: float | None = None
    source_id: str = ""
    status: str = ""
    group: str = "inputs"
    description: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    observed: str = ""
    counts: bool = True  # False where an alternative of the same group counts instead


class LiveModel(Struct, frozen=True):
    """Inputs, tables and lines of one answer. `answer` is the line that sensitivities and scenarios look at."""

    key: str  # prefix of its names in the workbook
    title: str
    inputs: tuple[LiveInput, ...]
    derived: tuple[Line, ...]
    answer: str
    shown: tuple[str, ...]  # lines on the Summary
    lower_is_better: bool = True
    tables: Mapping[str, Sequence[float]] = field(default_factory=dict)
    monthly: tuple[Line, ...] = ()
    answers: tuple[Line, ...] = ()
    months: int = 0
    expected: Mapping[str, float] = field(default_factory=dict)  # what the saved answer says, by line
    periods: Sequence[tuple[str, str, str]] = ()  # fiscal year, quarter and month of every month, where there are books
    compared_months: int = 0  # as delivered; the sheets of months reach further
    ways: Sequence[Mapping[str, Any]] = ()  # options that are recomputed beside each other
    scenarios: Mapping[str, Mapping[str, Value]] | None = None  # the inputs that each changes, where the answer says so

    def cell_name(self, name: str) -> str:
        """Return the name that a quantity has in the workbook."""
        return f"{self.key}_{name}"

    def starting_values(self) -> dict[str, Value]:
        """Return the inputs as delivered."""
        return {entry.name: entry.value for entry in self.inputs}

    @property
    def scalars(self) -> tuple[Line, ...]:
        """All lines with one value."""
        return (*self.derived, *self.answers)

    def line(self, name: str) -> Line:
        """Return the line of that name."""
        return next(line for line in (*self.scalars, *self.monthly) if line.name == name)


_ROW = "'Case flows'!$AA$1000:$AA$1000"  # the longest address of a month's line, whole and of one month
_MONTH, _SCALAR = "'Cash flows'!AA1000", "'Cases'!$AA$1000"


def with_short_formulas(model: LiveModel) -> LiveModel:
    """Return a model with parts of its long formulas as lines, so that none is long wherever it stands in a book."""
    by_month = {"m", *(line.name for line in model.monthly)}
    by_month |= {f"part_{number}_of_{name}" for name in by_month for number in range(1, 10)}

    # how long a name is at most where it is read: by name on one sheet, by address on the sheets of cases
    def read_in_a_month(name: str) -> str:
        if name.endswith(ALL_MONTHS) or name in by_month:
            return _ROW if name.endswith(ALL_MONTHS) else _MONTH
        return max(f"{model.key}_{name}", _SCALAR, key=len)

    def read_once(name: str) -> str:
        return _ROW if name in by_month else read_in_a_month(name)

    return replace(
        model,
        derived=shortened(model.derived, read_in_a_month),
        monthly=shortened(model.monthly, read_in_a_month),
        answers=shortened(model.answers, read_once),
    )


def constants(values: Mapping[str, float], descriptions: Mapping[str, str]) -> tuple[LiveInput, ...]:
    """Return constants as inputs, so that no figure stands inside a formula."""
    return tuple(
        LiveInput(
            name, value, unit_of(name), status="constant", group="constants", description=descriptions.get(name, "")
        )
        for name, value in values.items()
    )


def numbers(lines: Sequence[Line], answer: Mapping[str, Any]) -> dict[str, float]:
    """Return what an answer says of some lines, where it says a number."""
    values = {line.name: answer.get(line.name) for line in lines}
    return {name: value for name, value in values.items() if isinstance(value, (int, float))}


def compute(model: LiveModel, changes: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """Evaluate every line, with some inputs changed; a monthly line becomes an array over the months."""
    import numpy as np

    from gpucost.formula.arrays import evaluate

    # float64 and not float: dividing by zero gives inf or NaN, as the formulas expect, where Python would raise
    values: dict[str, Any] = {}
    for name, value in {**model.starting_values(), **(changes or {})}.items():
        values[name] = value if isinstance(value, str) else np.float64("nan" if value is None else value)
    empty = {name: np.float64(0.0) for name, value in values.items() if value != value}
    values |= {name: np.asarray(table, np.float64) for name, table in model.tables.items()}

    def of(line: Line) -> Any:  # a part is worked out also where its line does not ask for it: an empty cell counts 0
        return evaluate(line.text, values | empty if line.unit == PART else values)

    for line in model.derived:
        values[line.name] = of(line)
    if model.monthly:
        values["m"] = np.arange(model.months + 1, dtype=np.float64)
        for line in model.monthly:
            values[line.name] = np.broadcast_to(of(line), values["m"].shape)
    for line in model.answers:
        values[line.name] = of(line)
    return values


def needed(model: LiveModel, target: str) -> set[str]:
    """Return every name that a line depends on, itself included."""
    texts = {line.name: line.text for line in (*model.derived, *model.monthly, *model.answers)}
    reached: set[str] = set()
    waiting = [target]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += names(texts[name]) if name in texts else ()
    return reached


# --- Rent or buy: the inputs of the saved answer under the formulas of this version.


def ownership_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model, or None where the answer carries no inputs."""
    block = payload.get("model")
    if not block:
        return None
    if block.get("formulas") != comparison.FORMULAS:
        raise UsageError(
            "this answer was computed by the formulas of another version, and a workbook holds only those of this"
            " one. Ask the question again with `gpucost tco` and save its answer."
        )
    steps = ("breakeven_use_ratio", "cash_rate_", "equity_rate_")  # on the way to an answer
    summary_lines = [line.name for line in comparison.ANSWERS if not line.name.startswith(steps)]
    values = {row["name"]: row.get("value") for row in (*block["derived"], *block["answers"])}
    months = int(block["months"])
    inputs = []
    for row in block["inputs"]:
        name = str(row["name"])
        if not (name.isascii() and name.isidentifier()):  # it becomes the name of a cell, and answers come from outside
            raise UsageError(f"the saved answer has an input called {name[:40]!r}, which no formula can name.")
        entry = LiveInput(
            name,
            row["value"],
            row.get("unit") or unit_of(name),
            row.get("low"),
            row.get("high"),
            source_id=row.get("source_id") or "",
            status=row.get("status") or "",
            group=row.get("group") or "inputs",
            description=row.get("description") or "",
            choices=tuple(str(choice) for choice in row.get("choices") or () if choice),
            # no comparison may be longer than the sheet of its months
            minimum=row.get("minimum"),
            maximum=float(months) if name == "months" else row.get("maximum"),
            observed=str(row.get("observed") or ""),
            counts=bool(row.get("counts", True)),
        )
        inputs.append(entry)
    # fiscal year, quarter and name of each month, from the day of the first; without statements there are none
    periods = []
    if statements := payload.get("statements"):
        start, end = date.fromisoformat(payload["cash_flows"][0]["on"]), int(statements["fiscal_year_end_month"])
        for number in range(start.month - 1, start.month + months):
            calendar_year, month = start.year + number // 12, number % 12 + 1
            year, quarter = calendar_year + (month > end), (month - end - 1) % 12 // 3 + 1
            periods.append((f"FY{year}", f"FY{year} Q{quarter}", f"{calendar_year}-{month:02d}"))
    ways = [row for row in payload["options"] if "rival" in row]
    rivals = {row["name"] for row in ways}  # owning has none where no way to rent is promised: nothing is ranked then
    return LiveModel(
        key=key,
        title=title,
        inputs=tuple(inputs),
        derived=comparison.SCALARS,
        answer="npv_saving_usd",
        shown=tuple(summary_lines),
        lower_is_better=False,
        tables=block["tables"],
        monthly=comparison.BY_MONTH,
        answers=comparison.ANSWERS,
        months=months,
        scenarios={row["name"]: row["changes"] for row in payload.get("scenarios") or () if row["changes"]} or None,
        ways=ways if "own" in rivals else [],
        periods=periods,
        compared_months=len(payload["cash_flows"]) - 1,
        expected={name: value for name, value in values.items() if isinstance(value, (int, float))},
    )


# --- Serving: from tokens or utilisation to the bill; fleet and layout are pinned.

_SHOWN_SERVING = (
    "usd_per_mtok",
    "usd_per_mtok_low",
    "usd_per_mtok_high",
    "usd_per_mtok_input",
    "usd_per_mtok_output",
    "usd_per_month",
    "carried_tokens",
    "utilisation_of_paid_fraction",
    "api_usd_per_month",
    "saving_usd_per_month",
    "breakeven_tokens",
    "energy_kwh",
    "kgco2e",
)
_UNITS = {"tokens_per_month": "tokens", "replica_output_tokens_per_s": "tokens per second", "gpu_hours": "GPU-hours"}
_PINNED_SERVING = ("replica_gpus", "serving_replicas", "gpu_hours", "spare_gpu_hours")
_TOKENS, _UTILISATION = "tokens", "utilisation"
_LOAD_SWING, _PRICE_SWING = (0.7, 1.3), (0.8, 1.2)  # ends of an input for which nobody stated any


def serving_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model of the best offer, or None where the answer carries no factors."""
    options = payload.get("options") or []
    if not options or not set(serving_bill.INPUT_NAMES) <= set(options[0].get("factors") or ()):
        return None
    option = options[0]
    # what a workbook asks beside the factors: how the load is given, and the hosted price
    factors, request, against = option["factors"], payload.get("request") or {}, payload.get("breakeven") or {}
    demanded = request.get("tokens_per_month") is not None or request.get("requests_per_s") is not None
    capacity_hours = factors["serving_replicas"] * factors["replica_gpus"] * HOURS_PER_MONTH
    values = {
        **factors,
        "demand_basis": _TOKENS if demanded else _UTILISATION,
        "utilisation_fraction": factors["busy_gpu_hours"] / capacity_hours,
        "api_usd_per_mtok": against.get("against_usd_per_mtok"),
    }
    hosted = [row for row in payload.get("api") or () if row.get("provider") == against.get("against_provider")]
    sources = {
        "usd_per_gpu_hour": str((option.get("source_ids") or [""])[0]),
        "api_usd_per_mtok": str(hosted[0].get("source_id")) if hosted else "",
    }
    entries = (*serving_bill.DEMAND_INPUTS, *serving_bill.INPUTS, *serving_bill.HOSTED_INPUTS)
    lines = (*serving_bill.WITH_DEMAND, *(serving_bill.HOSTED if values["api_usd_per_mtok"] else ()))
    return LiveModel(
        key=key,
        title=title,
        inputs=(
            *(_serving_input(entry, values, sources.get(entry.name, "")) for entry in entries),
            *constants(serving_bill.CONSTANTS, {}),
        ),
        derived=lines,
        answer="usd_per_mtok",
        shown=_SHOWN_SERVING,
        expected=numbers(lines, option),
    )


def _serving_input(entry: Input, values: Mapping[str, Any], source: str) -> LiveInput:
    """Return an input with its ends: stated where there are any, a swing where the answer turns on it."""
    name, value = entry.name, values[entry.name]
    low, high = None, None
    if name == "usd_per_gpu_hour":
        cheap, dear = _PRICE_SWING
        low, high = value * min(values["price_low_ratio"], cheap), value * max(values["price_high_ratio"], dear)
    elif name == "tokens_per_month" and values["demand_basis"] == _TOKENS:
        low, high = value * _LOAD_SWING[0], value * _LOAD_SWING[1]
    elif name == "replica_output_tokens_per_s":
        low, high = value * values["speed_low_ratio"], value * values["speed_high_ratio"]
    return LiveInput(
        name,
        value,
        _UNITS.get(name) or unit_of(name),
        low,
        high,
        source,
        status="pinned" if name in _PINNED_SERVING else "sourced" if source else "",
        group=entry.group,
        description=entry.description,
        choices=(_TOKENS, _UTILISATION) if name == "demand_basis" else (),
    )


# --- Training: from the MFU of the best offer to the bill; the fleet is pinned.

_BYTES_PER_GB = 1e9
_DATASET = Line("dataset_gb", "dataset_bytes_per_token * tokens / bytes_per_gb", "the tokens on disk")
_PINNED_TRAINING = ("gpus", "nodes", "gpus_per_unit")
_SPEED_FOLLOWS_FROM = ("model_flop_per_token", "peak_tflops")  # beside MFU; answers of old versions lack them
_TRAINING_SWING = (0.8, 1.2)  # ends of an input for which nobody stated any
_SHOWN_TRAINING = (
    "cost_usd",
    "cost_low_usd",
    "cost_high_usd",
    "days",
    "gpu_hours",
    "usd_per_mtok",
    "exposure_usd",
    "cash_usd",
    "energy_kwh",
    "kgco2e",
)
_CONSTANT_DESCRIPTIONS = {
    "ramp_low_ratio": "shortest start ÷ usual one",
    "ramp_high_ratio": "longest start ÷ usual one",
    "z90_ratio": "standard deviations from the middle to the end of an 80 % range",
    "slack_ratio": "24.000000001 hours are one day, not two",
    "tiny_ratio": "below this exponent nothing interrupts",
    "series_limit_ratio": "below it the spread is taken from its series",
}


def training_model(payload: Mapping[str, Any], key: str, title: str) -> LiveModel | None:
    """Return the live model of the best offer, or None where the answer carries no factors."""
    options = payload.get("options") or []
    if not options or not set(training_bill.INPUT_NAMES) <= set(options[0].get("factors") or ()):
        return None
    option = options[0]
    values, entries, lines = {**option["factors"]}, [*training_bill.INPUTS], expand(training_bill.LINES)
    fixed = {**training_bill.CONSTANTS}
    if all(values.get(name) for name in _SPEED_FOLLOWS_FROM):
        # what the speed follows from: MFU, and the ends of its range as ratios
        typical = values["tokens_per_s_per_gpu"]
        peak_flop = values["peak_tflops"] * training_bill.SPEED_CONSTANTS["flop_per_tflop"]
        values |= {
            "mfu_fraction": typical * values["model_flop_per_token"] / peak_flop,
            "speed_low_ratio": values["tokens_per_s_per_gpu_low"] / typical,
            "speed_high_ratio": values["tokens_per_s_per_gpu_high"] / typical,
        }
        follows = {line.name for line in training_bill.SPEED}
        entries = [*training_bill.SPEED_INPUTS, *(entry for entry in entries if entry.name not in follows)]
        lines, fixed = (*training_bill.SPEED, *lines), {**fixed, **training_bill.SPEED_CONSTANTS}
    if values.get("dataset_gb") and values.get("tokens"):  # what is stored grows with the tokens
        values["dataset_bytes_per_token"] = values["dataset_gb"] * _BYTES_PER_GB / values["tokens"]
        entries = [
            Input("dataset_bytes_per_token", entry.group, "on disk, for a trained token")
            if entry.name == "dataset_gb"
            else entry
            for entry in entries
        ]
        fixed, lines = {**fixed, "bytes_per_gb": _BYTES_PER_GB}, (_DATASET, *lines)
    return LiveModel(
        key=key,
        title=title,
        inputs=(
            *(_training_input(entry, values, option) for entry in entries),
            *constants(fixed, _CONSTANT_DESCRIPTIONS),
        ),
        derived=lines,
        answer="cost_usd",
        shown=_SHOWN_TRAINING,
        expected=numbers(lines, {**option["factors"], **option}),
    )


def _training_input(entry: Input, values: Mapping[str, float], option: Mapping[str, Any]) -> LiveInput:
    """Return an input with its ends: stated where there are any, a swing where the answer turns on it."""
    name, value, priced = entry.name, values[entry.name], entry.name == "usd_per_gpu_hour"
    low, high = None, None
    if name == "mfu_fraction":
        low, high = value * values["speed_low_ratio"], value * values["speed_high_ratio"]
    elif name in ("preemptions_per_node_hour", "failures_per_gpu_year"):
        low, high = values[f"{name}_low"], values[f"{name}_high"]
    elif priced and (values["price_low_ratio"], values["price_high_ratio"]) != (1.0, 1.0):
        low, high = value * values["price_low_ratio"], value * values["price_high_ratio"]
    elif priced or name == "tokens":
        low, high = value * _TRAINING_SWING[0], value * _TRAINING_SWING[1]
    return LiveInput(
        name,
        value,
        unit_of(name),
        low,
        high,
        group=entry.group,
        description=entry.description,
        source_id=str((option.get("source_ids") or [""])[0]) if priced else "",
        status="pinned" if name in _PINNED_TRAINING else "sourced" if priced else "",
    )


# --- Choice of the model.

# kind of answer -> prefix of its names in the workbook, and what makes its model
_MAKERS: dict[str, tuple[str, Callable[[Mapping[str, Any], str, str], LiveModel | None]]] = {
    "estimate": ("train", training_model),
    "inference": ("serve", serving_model),
    "tco": ("own", ownership_model),
}


def model_of(payload: Mapping[str, Any], title: str, number: int) -> LiveModel | None:
    """Return the live model of an answer, or None where nothing of it can be live; `number` keeps names apart."""
    prefix, maker = _MAKERS.get(str(payload.get("kind")), ("", None))
    return maker(payload, f"{prefix}{number or ''}", title) if maker else None
