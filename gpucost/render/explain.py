"""How an option's figures come about: formula, numbers and sources, step by step, from the payload alone.

Nothing is asked of the catalog: the bill is evaluated anew from the factors that the answer holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.answers.training import Estimate
from gpucost.errors import UsageError
from gpucost.render.document import Document, Paragraph, Section, Table, columns_of, document_of, format_value
from gpucost.render.offers import training_causes

_TERA = 1e12  # FLOP in a TFLOP
_MOST_PARTS = 6  # of a step, the longest first


def explanation(payload: Estimate, rank: int = 1) -> Document:
    """Build the explanation of one option of an estimate."""
    # an answer may show fewer options than it ranks, and begin further down the list
    options: Sequence[Mapping[str, Any]] = payload.get("options") or []
    option = next((row for row in options if row["rank"] == rank), options[0] if options and rank == 1 else None)
    if option is None:
        raise UsageError(
            f"there is no option {rank}; this answer shows ranks {options[0]['rank']} to {options[-1]['rank']}."
        )
    steps = []
    for number, row in enumerate(_steps(payload, option), 1):
        source = f"   [{row['source']}]" if row.get("source") else ""
        lines = "\n      = ".join((row["formula"], row["numbers"], row["value"]))
        steps.append(f"{number:>2}. {row['what']}\n      = {lines}{source}")
    shares = training_causes(payload, option)
    bill = Table(
        columns_of("explain bill"),
        option["lines"],
        total={"name": "total", "cost_usd": option["cost_usd"]},
    )
    assumed = Table(
        columns_of("explain assumptions"),
        list(payload.get("assumptions") or ()),
    )
    sections = [
        Section("Step by step", (Paragraph("\n".join(steps), "code"),)),
        Section("Where the range comes from", (Table(columns_of("range causes"), shares),)),
        Section("The bill", (bill,)),
        Section("Assumptions", (assumed,) if assumed.rows else ()),
        Section("Notes", tuple(Paragraph(note, "note") for note in option.get("notes") or ())),
    ]
    subject = (
        f"option {option['rank']}: {option['gpus']} × {option['gpu']} at {option['provider']},"
        f" {option['option'].replace('_', ' ')}"
    )
    return document_of(payload, f"How the cost of {subject} is calculated", *sections)


def _steps(payload: Mapping[str, Any], option: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the steps from the work to the budget, in the order in which each needs those before it."""
    provenance = (
        f"{option['price_observed_on']}, {option['age_days']} days old, {option['price_book']} book,"
        f" {option['price_kind']} price"
    )
    if option.get("list_usd_per_gpu_hour"):
        saved = 1 - option["usd_per_gpu_hour"] / option["list_usd_per_gpu_hour"]
        provenance += f" in place of {option['list_usd_per_gpu_hour']:g} USD on the list ({-saved:+.1%})"
    source, price = str(option["lines"][0]["source_id"]), f"{option['usd_per_gpu_hour']:g} USD"
    work, factors = payload.get("workload") or {}, option["factors"]
    per_token, tokens = factors["model_flop_per_token"], factors["tokens"]
    # an older answer has no budget
    budget: list[dict[str, str]] = []
    if option.get("budget_usd") is not None:
        numbers = (
            f"cost {option['cost_usd']:,.2f}, high end {option['cost_high_usd']:,.2f}, chance"
            f" {option['chance_available_fraction']:.0%}, fallback {option['fallback_usd'] or 0:,.2f}"
        )
        rule = "with the chance the cost and its range, else the high end of the fallback: its 90th percentile"
        mean = "chance × cost + (1 − chance) × cost of the fallback"
        budget = [
            _step("budget_usd: what nine of ten such orders need", rule, numbers, f"{option['budget_usd']:,.2f} USD"),
            _step("expected_usd: what one expects to pay", mean, numbers, f"{option['expected_usd']:,.2f} USD"),
        ]
    return [
        # 6 FLOP a parameter and token: 2 forward, 4 backward (Kaplan et al. 2020); embedding is a look-up
        _step(
            "FLOP per trained token",
            "6 × active parameters without the input embedding + causal attention",
            f"{work.get('active_parameters', 0):,.0f} active parameters, sequences of"
            f" {work.get('sequence_tokens', 0):,} tokens",
            f"{per_token:.4g} FLOP",
        ),
        _step(
            "FLOP of the run",
            "FLOP per token × tokens × epochs",
            f"{per_token:.4g} × {tokens:.4g}",
            f"{per_token * tokens:.4g} FLOP",
        ),
        *_speed(option),
        *_lines(_HOURS, option),
        _step("usd_per_gpu_hour: price of an accelerator-hour", "as observed", provenance, price, source),
        *_lines((*(_CONTRACT if option.get("term_months") else ()), *_COST), option),
        *budget,
        *_lines(_ENERGY if option.get("energy_kwh") is not None else (), option),
    ]


def _step(title: str, formula: str, numbers: str, value: str, source: str = "") -> dict[str, str]:
    return {"what": title, "formula": formula, "numbers": numbers, "value": value, "source": source}


def _speed(option: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the time of a step, the speed that follows, and what share of the chip's peak that is."""
    factors, layout = option["factors"], option["layout"]
    speed, peak = factors["tokens_per_s_per_gpu"], factors.get("peak_tflops")
    degrees = (
        ", ".join(
            f"{name} {layout[name]}" for name in ("tensor", "pipeline", "context", "expert", "data") if layout[name] > 1
        )
        or "one accelerator"
    )
    # Of older answers the parts of a step may be missing: their sum is then taken as one, and no part is named.
    parts = sorted((option.get("components") or {}).items(), key=lambda item: -item[1])
    step_s = sum(value for _, value in parts) or 1.0
    shares = ", ".join(
        f"{name.removesuffix('_s').replace('_', ' ')} {value / step_s:.1%}" for name, value in parts[:_MOST_PARTS]
    )
    # the parts that overlap others are not in the sum, so the shares are those of the time that passes
    rows = [
        _step(
            "Time of one step, on the fastest layout",
            "sum of its parts, without those that overlap others",
            f"{degrees}; sharding {layout['sharding']}, micro-batch {layout['micro_batch']}, recompute"
            f" {layout['recompute']}: {shares}",
            f"{step_s:.4g} s for {layout['global_batch']:,} sequences",
        ),
        _step(
            "Tokens per second per accelerator",
            "sequences × sequence length ÷ step time ÷ accelerators",
            f"{layout['global_batch']:,} sequences ÷ {step_s:.4g} s ÷ {option['gpus']}",
            f"{speed:,.1f} ({option['tokens_per_s_per_gpu_low']:,.1f} to {option['tokens_per_s_per_gpu_high']:,.1f};"
            f" confidence {option['speed_confidence']})",
        ),
    ]
    if peak:  # answers of old versions lack it
        numbers = f"{speed:,.1f} × {factors['model_flop_per_token']:.4g} ÷ {peak:g}e12"
        reached = f"{speed * factors['model_flop_per_token'] / peak / _TERA:.1%}"
        rows.append(_step("MFU", "tokens/s × FLOP per token ÷ dense peak", numbers, reached))
    return rows


# Lines of the bill that are explained, before and after the price: those that a reader asks for.
_HOURS = (
    "work_hours",
    "productive_hours",
    "stops_per_hour",
    "checkpoint_hours",
    "interval_hours",
    "raw_stretch_ratio",
    "goodput_fraction",
    "stretch_calendar_ratio",
    "calendar_hours",
    "days",
)
_COST = (
    "cost_usd",
    "shorter_ratio",
    "longer_ratio",
    "chance_ratio",
    "range_up_ratio",
    "range_down_ratio",
    "cost_low_usd",
    "cost_high_usd",
)
_CONTRACT = ("billed_hours", "exposure_usd", "amortised_usd", "unused_usd", "cash_usd")
_ENERGY = ("drawn_gpu_hours", "energy_kwh", "kgco2e")
# a formula as people write it
_SIGNS = {" * ": " × ", " / ": " ÷ ", " ** ": "^"}


def _lines(names: Sequence[str], option: Mapping[str, Any]) -> list[dict[str, str]]:
    """Write lines of the bill as they are evaluated: the formula, what it reads, and what it comes to."""
    import numpy as np

    from gpucost.formula.arrays import evaluate_all
    from gpucost.formula.language import names as names_in
    from gpucost.money.training_bill import CONSTANTS, INPUT_NAMES, LINES

    # The bill is a table of formulas: it is evaluated again from the factors that the answer holds, so that every line
    # shows the text that was computed, and no second wording of it can go stale.
    factors = option["factors"]
    # what was not stated is NaN to the formulas, which carry it on instead of taking a zero
    inputs = {name: np.array([np.nan if factors[name] is None else factors[name]]) for name in INPUT_NAMES}
    values: dict[str, Any] = {**CONSTANTS, **inputs}
    evaluate_all(LINES, values)
    lines = {line.name: line for line in LINES}
    steps = []
    for name in names:
        line, value = lines[name], float(np.ravel(values[name])[0])
        text = line.text
        for sign, printed in _SIGNS.items():
            text = text.replace(sign, printed)
        operands = ", ".join(f"{inner} {float(np.ravel(values[inner])[0]):,.6g}" for inner in names_in(line.text))
        title = f"{name}: {line.description}"
        if line.measure == "USD":
            result = f"{value:,.2f} USD"
        elif line.measure == "fraction of one":
            result = format_value(value, line.measure)
        else:
            result = f"{value:,.6g} {line.measure if line.measure != 'ratio' else ''}".rstrip()
        if name == "stops_per_hour" and not option["interruption_rate_measured"]:
            result += " (assumed for this offer)"
        steps.append(_step(title, text, operands, result))
    return steps
