"""What models cost that give no tokens out, in units of their own: per million tokens, hour of audio, image.

Each accelerator holds the whole model and works alone, so that a machine of eight is eight workers. Speeds are
rooflines with wide ranges (`physics/tasks.py`); prices are those of every other question.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gpucost.answers.common import cited, frame
from gpucost.answers.serving import Inference, Processing, ProcessingOption
from gpucost.architectures.config import refusal_of
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError, OverBudgetError, UsageError
from gpucost.market import tiers
from gpucost.market.facts import Market, at_most, at_own_price, market_of, placeless
from gpucost.market.supply import left_out
from gpucost.market.terms import cluster, old_price, quoted, seen, seller, unlisted
from gpucost.options import OPTIONS
from gpucost.physics import tasks, transformer
from gpucost.physics.hardware import half_precision
from gpucost.serving.request import InferenceRequest
from gpucost.serving.run import lasting, select
from gpucost.types import Accelerator
from gpucost.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, counted

_ASSUMED = (
    "The speed is a roofline, not fitted to measurements of such models: its range is wide, and a run of an hour on"
    " one accelerator narrows it."
)
_WATTS = 0.75  # share of the board power that such work draws, assumed


class TaskQuestion(NamedTuple):
    """What is asked of such a model beside prices."""

    input_tokens: float | None
    side: int | None
    steps: int | None


def refuse_by_name(name: object) -> None:
    """Refuse a model of a kind that is not modelled, by what it is."""
    if reason := refusal_of(str(name)):
        raise UsageError(
            f"{name}: {reason}, and its size is not on record. `gpucost models` lists what is; a config.json of a"
            " language model can be given as --model."
        )


def task_row(catalog: Catalog, name: object) -> dict[str, Any] | None:
    """Return the row of a model that gives no tokens out, or of one that sees images; None where it is neither."""
    wanted = str(name).rsplit("/", 1)[-1].lower().replace("_", "-").replace(" ", "-")
    spellings = {"sd-xl": "sdxl", "stable-diffusion-xl": "sdxl", "stable-diffusion-xl-base-1.0": "sdxl"} | {
        "flux": "flux.1-dev",
        "flux-dev": "flux.1-dev",
        "flux1-dev": "flux.1-dev",
        "flux-schnell": "flux.1-schnell",
        "whisper": "whisper-large-v3",
        "whisper-large": "whisper-large-v3",
        "whisper-turbo": "whisper-large-v3-turbo",
        "stable-diffusion-v1-5": "sd-1.5",
        "bert": "bert-base",
    }
    wanted = spellings.get(wanted, wanted.removesuffix("-instruct"))
    return next((row for row in catalog.rows("task_models") if row["id"] == wanted), None)


def make_task(catalog: Catalog, row: Mapping[str, Any], asked: TaskQuestion) -> tasks.Task:
    """Return the work of one unit; what does not belong to the model is refused."""
    kind = row["kind"]
    pictures, texts = kind in ("unet", "dit"), kind in ("embedding", "reranker")
    for flag, value, belongs in (
        ("--image-size", asked.side, pictures),
        ("--steps", asked.steps, pictures),
        ("--prompt-tokens", asked.input_tokens, texts),
    ):
        if value is not None and not belongs:
            raise UsageError(f"{flag}: {row['id']} is {tasks.NAMES[kind]} and has none. Leave it out.")
    if texts:
        base = catalog.architecture(row["base"]) if row["base"] else None
        return tasks.encoder(row, base, asked.input_tokens or float(row["input_tokens"]))
    if pictures:
        levels = [one for one in catalog.rows("unet_levels") if one["model_id"] == row["id"]]
        by_level = [(one["channels"], one["attention_layers"]) for one in sorted(levels, key=lambda one: one["level"])]
        return tasks.painter(row, asked.side or row["side"], asked.steps or row["steps"], by_level)
    return tasks.recogniser(row)


def process(request: InferenceRequest, row: Mapping[str, Any], asked: TaskQuestion, catalog: Catalog) -> Processing:
    """Answer what a unit costs on every offer whose accelerator holds the model."""
    task = make_task(catalog, row, asked)
    market = at_own_price(placeless(market_of(catalog), catalog, request), catalog, request)
    market = at_most(market, request.max_gpus)
    numbers = lasting(market, select(request, catalog, market))
    rows, left = [], []
    for number in (int(one) for one in numbers):
        chip = market.supply.keys[int(market.supply.key[number])].accelerator
        precision = _precision(request, chip)
        speed = tasks.speed(task, chip, precision)
        offer = market.facts.offers[number]
        if speed is None:
            left.append((offer, f"the chip has no {precision} units on record"))
        elif not tasks.fits(task, chip, precision):
            need = tasks.memory_gb(task, precision)
            left.append(
                (offer, f"needs {need:.1f} GB in {precision}, and one accelerator holds {tasks.usable_gb(chip):.1f}")
            )
        else:
            rows.append(_option(request, market, number, task, chip, precision, speed))
    if not rows:
        raise NothingFitsError(
            f"{task.name} fits none of the accelerators asked about: {left[0][1] if left else 'none is on offer'}. Try"
            " --precision fp8, or larger ones."
        )
    ranked = _ranked(request, rows)
    shown = ranked[: request.top or None]
    return {
        "kind": "processing",
        **frame(request.to_dict(), market.facts.as_of, market.facts.catalog_version),
        "lead": _lead(task, ranked[0]),
        "said": _said(task, row, request, ranked[0]),
        "unit": task.unit,
        "options": shown,
        "offers_ranked": len(ranked),
        "excluded": left_out(left)[:100],
        "warnings": [_ASSUMED],
        "sources": cited(
            market.facts.sources, sorted({row["source_id"], *(name for one in shown for name in one["source_ids"])})
        )
        | cited({row["source_id"]: catalog.source(row["source_id"])}, [row["source_id"]]),
    }


def _precision(request: InferenceRequest, chip: Accelerator) -> str:
    if request.precision == "auto":
        return half_precision(chip)
    if request.precision not in tasks.VALUE_BYTES:
        raise UsageError(
            f"--precision: {request.precision} is not modelled for such a model. Take {', '.join(tasks.VALUE_BYTES)}."
        )
    return request.precision


def _option(
    request: InferenceRequest,
    market: Market,
    number: int,
    task: tasks.Task,
    chip: Accelerator,
    precision: str,
    speed: tasks.TaskSpeed,
) -> ProcessingOption:
    """Return what one offer costs for a unit: USD per GPU-hour × seconds ÷ 3,600 ÷ the share of time that is used."""
    offer, terms = market.facts.offers[number], market.terms
    busy = request.utilisation_fraction if request.utilisation_given or request.requests_per_s else 1.0
    price = float(terms.usd_per_gpu_hour[number])
    slow, typical, fast = (seconds / SECONDS_PER_HOUR / busy for seconds in speed.seconds)
    measured = market.measured["serving"]
    gpus = int(market.supply.unit_gpus[number])
    needed = None
    if request.requests_per_s is not None:
        needed = max(1, int(np.ceil(request.requests_per_s * speed.seconds.typical / busy - 1e-9)))
        needed = int(np.ceil(needed / gpus) * gpus)
    return {
        "rank": 0,
        **seller(offer),
        "gpus": needed or gpus,
        "instances": (needed or gpus) // gpus,
        "precision": precision,
        "usd_per_unit": price * typical,
        "usd_per_unit_low": price * fast * float(terms.price_low_ratio[number]),
        "usd_per_unit_high": price * slow * float(terms.price_high_ratio[number]),
        "unit_s": speed.seconds.typical,
        "unit_low_s": speed.seconds.fast,
        "unit_high_s": speed.seconds.slow,
        "usd_per_gpu_hour": price,
        "usd_per_month": None if needed is None else price * needed * HOURS_PER_MONTH,
        "memory_gb": tasks.memory_gb(task, precision),
        "batch": task.batch,
        "bottleneck": speed.bottleneck,
        "unit_kwh": None if chip.tdp_w is None else chip.tdp_w * _WATTS / 1000 * typical,
        **seen(
            offer, terms, number, 0.0, tiers.said(market.supply, terms, number, needed or gpus, measured, "serving")
        ),
        "source_ids": [offer.source_id],
        "notes": old_price(offer, terms, number),
    }


def _ranked(request: InferenceRequest, rows: list[ProcessingOption]) -> list[ProcessingOption]:
    """Return options, one a product: what one can order first unless otherwise asked, then by the goal."""

    def cost(row: ProcessingOption) -> float:
        month = row["usd_per_month"]
        return row["usd_per_unit"] if month is None else month

    if request.max_cost_usd is not None and request.requests_per_s is None:
        raise UsageError("--budget is of a month: add --requests-per-s, the load.")

    def goal(row: ProcessingOption) -> float:
        if request.optimize == "latency":
            return row["unit_s"]
        return (row["unit_kwh"] or np.inf) if request.optimize == "carbon" else cost(row)

    interruptible = {name for name, rule in OPTIONS.items() if rule.interruptible}
    ordered = sorted(
        rows,
        key=lambda row: (
            bool(row.get("missing")) and not request.include_unverified,
            row["option"] in interruptible,
            OPTIONS[row["option"]].family == "committed" and not request.option,  # binds for longer than anyone asked
            goal(row),
            row["offer_id"],
        ),
    )
    kept: dict[tuple[Any, ...], ProcessingOption] = {}
    for row in ordered:
        if request.max_cost_usd is not None and (row["usd_per_month"] or 0.0) > request.max_cost_usd:
            continue
        name = tuple(row[field] for field in ("provider", "instance_type", "gpu", "option", "term_months", "tier"))
        kept.setdefault(name, row)
    if not kept:
        months = min(row["usd_per_month"] or np.inf for row in ordered)
        raise OverBudgetError(
            f"the cheapest offer costs {months:,.2f} USD a month, over the budget of {request.max_cost_usd:,.2f} USD."
        ).offering(budget=int(np.ceil(months)))
    return [{**row, "rank": place} for place, row in enumerate(kept.values(), 1)]


def _lead(task: tasks.Task, best: ProcessingOption) -> str:
    unsure = "; ".join(best.get("missing") or ())
    month = best["usd_per_month"]
    machine = cluster(best)
    told = f", {month:,.0f} USD a month" if month is not None else ""
    return (
        f"{task.name}: {'lowest quoted, unverified, ' if unsure else ''}{best['usd_per_unit']:.3g} USD per {task.unit}"
        f" ({best['usd_per_unit_low']:.2g} to {best['usd_per_unit_high']:.2g}) on {machine} at {best['provider']},"
        f" {OPTIONS[best['option']].label}{told}; {_seconds(best['unit_s'])} each"
        f" ({_seconds(best['unit_low_s'])} to {_seconds(best['unit_high_s'])});"
        f" {best['usd_per_gpu_hour']:.2f} USD per GPU-hour{quoted(best)}.{f' Missing: {unsure}.' if unsure else ''}"
        f"{unlisted(best['age_days'], best['price_book'])}"
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def _said(task: tasks.Task, row: Mapping[str, Any], request: InferenceRequest, best: ProcessingOption) -> list[str]:
    """Say what the answer takes for granted."""
    size = (
        f"{task.parameters / 1e9:.3g} billion parameters"
        if task.parameters >= 1e9
        else f"{task.parameters / 1e6:.0f} million parameters"
    )
    more = " with its text encoders and image decoder" if row["text_parameters"] else ""
    lines = [
        f"{task.name} is {tasks.NAMES[task.kind]}: {size}{more}, {task.flop.typical / 1e12:,.3g} TFLOP per {task.unit}"
        f" ({'; '.join(task.told)}). {_sentence(row['notes'])}."
    ]
    if request.requests_per_s is not None:
        lines.append(
            f"{request.requests_per_s:.3g} {tasks.PLURALS[task.unit]} a second at"
            f" {request.utilisation_fraction:.0%} of capacity: {counted(best['gpus'], 'accelerator')}, each with the"
            " whole model."
        )
    elif request.utilisation_given:
        lines.append(f"Accelerators are busy {request.utilisation_fraction:.0%} of the time.")
    else:
        lines.append("No load given: assumes that accelerators are busy all the time.")
    return lines


# --- Images in a prompt.


def with_images(
    request: InferenceRequest, row: Mapping[str, Any], images: float, side: int | None, catalog: Catalog
) -> InferenceRequest:
    """Return a request whose prompts hold images: the tokens that each becomes, and its encoder as tokens.

    The encoder runs once an image: its FLOP ÷ (2 × active parameters) are so many prompt tokens more.
    """
    if not images:
        return request
    seen = tasks.sight(row, side or row["side"])
    shape = transformer.stack([catalog.architecture(request.model)])
    alike = seen.flop / (2 * float(transformer.active_parameters(shape)[0]))
    return replace(request, prompt_tokens=request.prompt_tokens + images * (seen.tokens + alike))


def image_said(row: Mapping[str, Any], images: float, side: int | None, catalog: Catalog, answer: Inference) -> str:
    """Say what an image is in tokens and in money on the first offer."""
    side = side or int(row["side"])
    seen = tasks.sight(row, side)
    shape = transformer.stack([catalog.architecture(str(row["base"]))])
    alike = seen.flop / (2 * float(transformer.active_parameters(shape)[0]))
    usd = (seen.tokens + alike) / 1e6 * answer["options"][0]["usd_per_mtok_input"]
    held = f"{images:g} in each prompt" if images else "none in the prompts above: --images says how many"
    return (
        f"An image of {side} × {side} pixels becomes {seen.tokens:,} tokens and costs about {1000 * usd:.3g} USD per"
        f" thousand on the first offer, its encoder of {seen.parameters / 1e6:.0f} million parameters (counted as"
        f" {alike:,.0f} prompt tokens more) among it; {held}."
    )
