"""How an option's figures come about: formula, numbers and sources, step by step, from the payload alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucost.answers.training import Estimate
from gpucost.errors import UsageError
from gpucost.render.document import Document, Paragraph, Section, Table, columns, document_of
from gpucost.units import HOURS_PER_DAY, HOURS_PER_YEAR, SECONDS_PER_HOUR

_TERA = 1e12


def explanation(payload: Estimate, rank: int = 1) -> Document:
    """Build the explanation of one option of an estimate."""
    options: Sequence[Mapping[str, Any]] = payload.get("options") or []
    option = next((row for row in options if row["rank"] == rank), options[0] if options and rank == 1 else None)
    if option is None:
        raise UsageError(
            f"there is no option {rank}; this answer shows ranks {options[0]['rank']} to {options[-1]['rank']}."
        )
    steps = [
        *_work(payload, option),
        *_speed(option),
        *_time(option),
        *_interruptions(option),
        *_money(option),
        *_range(option),
        *_energy(option),
    ]
    rows = [{"step": number, **row} for number, row in enumerate(steps, 1)]
    bill = Table(
        columns("name", "quantity", "unit", "unit_price_usd", "cost_usd", "source_id:1"),
        option["lines"],
        total={"name": "total", "cost_usd": option["cost_usd"]},
    )
    assumed = list(payload.get("assumptions") or ())
    sections = [
        Section("Step by step", (Paragraph("\n".join(map(_written, rows)), "code"),)),
        Section("The bill", (bill,)),
        Section(
            "What was assumed",
            (
                (Table(columns("name", "value", "low", "high", "unit", "status", "note:1", "source_id:2"), assumed),)
                if assumed
                else ()
            ),
        ),
        Section("What an option's notes say", tuple(Paragraph(note, "note") for note in option.get("notes") or ())),
    ]
    where = (
        f"option {option['rank']}: {option['gpus']} × {option['gpu']} at {option['provider']},"
        f" {option['option'].replace('_', ' ')}"
    )
    return document_of(payload, f"How {where} comes about", *sections)


def _written(row: Mapping[str, Any]) -> str:
    source = f"   [{row['source']}]" if row.get("source") else ""
    return (
        f"{row['step']:>2}. {row['what']}\n      = {row['formula']}\n      = {row['numbers']}\n      ="
        f" {row['value']}{source}"
    )


def _step(what: str, formula: str, numbers: str, value: str, source: str = "") -> dict[str, str]:
    return {"what": what, "formula": formula, "numbers": numbers, "value": value, "source": source}


def _work(payload: Mapping[str, Any], option: Mapping[str, Any]) -> list[dict[str, str]]:
    work, factors = payload.get("workload") or {}, option["factors"]
    per_token, tokens = factors["model_flop_per_token"], factors["tokens"]
    return [
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
    ]


def _speed(option: Mapping[str, Any]) -> list[dict[str, str]]:
    factors, layout = option["factors"], option["layout"]
    speed, peak = factors["tokens_per_s_per_gpu"], factors.get("peak_tflops")
    degrees = (
        ", ".join(
            f"{name} {layout[name]}" for name in ("tensor", "pipeline", "context", "expert", "data") if layout[name] > 1
        )
        or "one accelerator"
    )
    parts = sorted((option.get("components") or {}).items(), key=lambda item: -item[1])
    whole = sum(value for _, value in parts)
    shares = ", ".join(f"{name.removesuffix('_s').replace('_', ' ')} {value / whole:.1%}" for name, value in parts[:6])
    rows = [
        _step(
            "Time of one step, on the fastest layout",
            "sum of its parts, those that are hidden left out",
            f"{degrees}; sharding {layout['sharding']}, micro-batch {layout['micro_batch']}, recompute"
            f" {layout['recompute']}: {shares}",
            f"{whole:.4g} s for {layout['global_batch']:,} sequences",
        ),
        _step(
            "Tokens per second and accelerator",
            "sequences × sequence length ÷ step time ÷ accelerators",
            f"{layout['global_batch']:,} sequences ÷ {whole:.4g} s ÷ {option['gpus']}",
            f"{speed:,.1f} ({option['tokens_per_s_per_gpu_low']:,.1f} to {option['tokens_per_s_per_gpu_high']:,.1f};"
            f" confidence {option['speed_confidence']})",
        ),
    ]
    if peak:
        numbers = f"{speed:,.1f} × {factors['model_flop_per_token']:.4g} ÷ {peak:g}e12"
        rows.append(
            _step(
                "MFU",
                "tokens/s × FLOP per token ÷ dense peak",
                numbers,
                f"{speed * factors['model_flop_per_token'] / peak / _TERA:.1%}",
            )
        )
    return rows


def _time(option: Mapping[str, Any]) -> list[dict[str, str]]:
    factors = option["factors"]
    hours = factors["tokens"] / factors["tokens_per_s_per_gpu"] / factors["gpus"] / SECONDS_PER_HOUR
    numbers = f"{factors['tokens']:.4g} ÷ ({factors['tokens_per_s_per_gpu']:,.1f} × {factors['gpus']:g}) ÷ 3,600"
    return [
        _step("Hours of training steps", "tokens ÷ (tokens/s × accelerators) ÷ 3,600", numbers, f"{hours:,.2f} hours")
    ]


def _interruptions(option: Mapping[str, Any]) -> list[dict[str, str]]:
    f = option["factors"]
    rate = f["preemptions_per_node_hour"] * f["nodes"] + f["failures_per_gpu_year"] * f["gpus"] / HOURS_PER_YEAR
    work = f["tokens"] / f["tokens_per_s_per_gpu"] / f["gpus"] / SECONDS_PER_HOUR
    return [
        _step(
            "Interruptions per hour, λ",
            "preemptions per node × nodes + failures per accelerator-year × accelerators ÷ 8,760",
            f"{f['preemptions_per_node_hour']:.4g} × {f['nodes']:g} + {f['failures_per_gpu_year']:.3g} × {f['gpus']:g}"
            " ÷ 8,760",
            f"{rate:.4g}" + ("" if option["interruption_rate_measured"] else " (not measured for this offer)"),
        ),
        _step(
            "Hours between checkpoints, τ",
            "(1 + W(−exp(−λC − 1))) ÷ λ, at most the run; C = checkpoint ÷ write bandwidth",
            f"C = {f['checkpoint_gb']:,.1f} GB ÷ {f['checkpoint_write_gb_per_s']:g} GB/s = {f['checkpoint_hours']:.4g}"
            " hours",
            f"{f['interval_hours']:.4g} hours",
        ),
        _step(
            "Hours paid ÷ hours of useful work",
            "exp(λR) (exp(λ(τ + C)) − 1) ÷ (λτ), R hours to restart",
            f"λ = {rate:.4g}, R = {f['restart_hours']:g}",
            f"{option['stretch_paid_ratio']:.5f} (goodput {option['goodput_fraction']:.2%})",
        ),
        _step(
            "Calendar days",
            "(hours of steps × (1 + evaluation) × paid stretch × (1 + λ × wait) + start-up) ÷ 24",
            f"({work:,.2f} × {1 + f['evaluation_fraction']:g} × {option['stretch_calendar_ratio']:.5f} +"
            f" {f['ramp_hours']:g}) ÷ {HOURS_PER_DAY:g}",
            f"{option['days']:.2f} days",
        ),
    ]


def _money(option: Mapping[str, Any]) -> list[dict[str, str]]:
    seen = (
        f"{option['price_observed_on']}, {option['age_days']} days old, {option['price_book']} book,"
        f" {option['price_kind']} price"
    )
    hours = [line for line in option["lines"] if line["unit"] == "GPU-hour"]
    source = str(option["lines"][0]["source_id"])
    rows = [
        _step("Price of an accelerator-hour", "as observed", seen, f"{option['usd_per_gpu_hour']:g} USD", source),
        _step(
            "Accelerator-hours × price",
            "each line to the cent",
            " + ".join(f"{line['quantity']:,.2f} × {line['unit_price_usd']:g}" for line in hours),
            f"{sum(line['cost_usd'] for line in hours):,.2f} USD",
            source,
        ),
        _step(
            "Cost of the run",
            "sum of the rounded lines",
            " + ".join(f"{line['cost_usd']:,.2f}" for line in option["lines"]),
            f"{option['cost_usd']:,.2f} USD",
        ),
    ]
    if option.get("term_months"):
        numbers = (
            f"amortised {option['amortised_usd']:,.2f}, exposure {option['exposure_usd']:,.2f}, unused"
            f" {option['unused_usd']:,.2f}"
        )
        rows.append(
            _step(
                "Contract",
                "hours used × price; all that is owed; the difference",
                numbers,
                f"cash by the end {option['cash_usd']:,.2f} USD",
            )
        )
    return rows


def _range(option: Mapping[str, Any]) -> list[dict[str, str]]:
    f = option["factors"]
    speed = f["tokens_per_s_per_gpu"]
    numbers = (
        f"speed × {f['tokens_per_s_per_gpu_low'] / speed:.2f} to {f['tokens_per_s_per_gpu_high'] / speed:.2f}, price ×"
        f" {f['price_low_ratio']:.2f} to {f['price_high_ratio']:.2f}, stretch {f['stretch_low_ratio']:.3f} to"
        f" {f['stretch_high_ratio']:.3f}, chance ± {f['stretch_spread_ratio']:.4f}"
    )
    value = f"{option['cost_low_usd']:,.2f} to {option['cost_high_usd']:,.2f} USD"
    return [
        _step(
            "80 % range",
            "independent shares of speed, price age, interruption rate and chance, added in squares",
            numbers,
            value,
        )
    ]


def _energy(option: Mapping[str, Any]) -> list[dict[str, str]]:
    f = option["factors"]
    if option.get("energy_kwh") is None:
        return []
    return [
        _step(
            "Energy",
            "paid accelerator-hours × rated power × mean draw × PUE",
            f"{f['rated_power_w']:,.0f} W × {f['power_fraction']:g} × {f['pue_ratio']:g}",
            f"{option['energy_kwh']:,.0f} kWh",
        ),
        _step(
            "Carbon",
            "energy × intensity of the grid",
            f"{f['grid_kgco2e_per_kwh']:g} kgCO2e per kWh",
            f"{option['kgco2e']:,.0f} kgCO2e",
        ),
    ]
