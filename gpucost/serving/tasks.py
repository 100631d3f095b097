"""What models cost that do not generate tokens, in units of their own: per million tokens, hour of audio, image.

Each accelerator holds the whole model and works alone, so that a machine of eight is eight workers. Speeds are
rooflines with wide ranges (`physics/tasks.py`); prices are those of every other question.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from gpucost.answers.common import cited, frame
from gpucost.answers.serving import Inference, ProcessedOffer, Processing, ProcessingOption
from gpucost.architectures.config import refusal_of
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError, OverBudgetError, UsageError
from gpucost.market.budget import budgets, chances, sure
from gpucost.market.facts import Market, market_of
from gpucost.market.filters import at_most, at_own_price, placeless
from gpucost.market.table import LEFT_OUT, LOWEST, OfferLine, OfferTable, Ordering, in_order, standing
from gpucost.market.terms import cluster, old_price, seen, seller, unlisted
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


# what is the same wherever it is sold
_product_of = itemgetter("provider", "instance_type", "gpu", "option", "term_months", "tier")


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
    spelling = str(name).rsplit("/", 1)[-1].lower().replace("_", "-").replace(" ", "-")
    # as people write them, for what their rows are called
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
    spelling = spellings.get(spelling, spelling.removesuffix("-instruct"))
    return next((row for row in catalog.rows("task_models") if row["id"] == spelling), None)


def make_task(catalog: Catalog, row: Mapping[str, Any], question: TaskQuestion) -> tasks.Task:
    """Return the work of one unit; what does not belong to the model is refused."""
    kind = row["kind"]
    pictures, texts = kind in ("unet", "dit"), kind in ("embedding", "reranker")
    for flag, value, belongs in (
        ("--image-size", question.side, pictures),
        ("--steps", question.steps, pictures),
        ("--prompt-tokens", question.input_tokens, texts),
    ):
        if value is not None and not belongs:
            raise UsageError(f"{flag}: {row['id']} is {tasks.NAMES[kind]} and has none. Leave it out.")
    if texts:
        base = catalog.architecture(row["base"]) if row["base"] else None
        return tasks.encoder(row, base, question.input_tokens or float(row["input_tokens"]))
    if pictures:
        levels = [level for level in catalog.rows("unet_levels") if level["model_id"] == row["id"]]
        levels.sort(key=lambda level: int(level["level"]))
        by_level = [(level["channels"], level["attention_layers"]) for level in levels]
        return tasks.painter(row, question.side or row["side"], question.steps or row["steps"], by_level)
    return tasks.recogniser(row)


def process(request: InferenceRequest, row: Mapping[str, Any], question: TaskQuestion, catalog: Catalog) -> Processing:
    """Answer what a unit costs on every offer whose accelerator holds the model."""
    task = make_task(catalog, row, question)
    market = at_own_price(placeless(market_of(catalog), catalog, request), catalog, request)
    market = at_most(market, request.max_gpus)
    # of each offer its figures, or why its accelerator does not hold the model
    numbers = lasting(market, select(request, catalog, market))
    rows: dict[int, ProcessingOption] = {}
    left: dict[int, str] = {}
    for number in numbers.tolist():
        chip = market.supply.keys[int(market.supply.key[number])].accelerator
        precision = half_precision(chip) if request.precision == "auto" else request.precision
        if precision not in tasks.VALUE_BYTES:
            known = ", ".join(tasks.VALUE_BYTES)
            raise UsageError(f"--precision: {precision} is not modelled for such a model. Take {known}.")
        speed = tasks.speed(task, chip, precision)
        if speed is None:
            left[number] = f"the chip has no {precision} units on record"
        elif not tasks.fits(task, chip, precision):
            need = tasks.memory_gb(task, precision)
            left[number] = f"needs {need:.1f} GB in {precision}, and one accelerator holds {tasks.usable_gb(chip):.1f}"
        else:
            rows[number] = _option(request, market, number, task, chip, precision, speed)
    if not rows:
        reason = next(iter(left.values()), "none is on offer")  # the first offer's stands for all
        raise NothingFitsError(
            f"{task.name} fits none of the accelerators asked about: {reason}. Try --precision fp8, or larger ones."
        )
    table = _table(request, market, rows, left)
    ranked: list[ProcessingOption] = [
        {**rows[line.offer], "rank": line.rank} for line in table.lines if line.rank is not None
    ]
    shown, best = ranked[: request.top or None], ranked[0]
    # the table as rows of the answer: what differs in its region alone is one row
    offers, cells = market.facts.offers, ("usd_per_unit", "usd_per_unit_low", "usd_per_unit_high", "unit_s")
    offer_rows: list[ProcessedOffer] = []
    for line, regions in table.folded(offers):
        option = rows.get(line.offer)
        gpus = offers[line.offer].gpus if option is None else option["gpus"]
        offer_row: dict[str, Any] = {**table.row(line, offers[line.offer], market.terms, gpus, regions)}
        for name in (*cells, "usd_per_month"):
            offer_row[name] = None if option is None else option[name]  # type: ignore[literal-required]
        offer_rows.append(cast(ProcessedOffer, offer_row))
    month = "" if best["usd_per_month"] is None else f", {best['usd_per_month']:,.0f} USD a month"
    each = f"a {task.unit}" if task.request_units != 1.0 else "each"
    lead = (
        f"{task.name}: {best['usd_per_unit']:.3g} USD per {task.unit}"
        f" ({best['usd_per_unit_low']:.2g} to {best['usd_per_unit_high']:.2g}) on {cluster(best)} at"
        f" {best['provider']}, {OPTIONS[best['option']].label}{month}; {_seconds(best['unit_s'])} {each}"
        f" ({_seconds(best['unit_low_s'])} to {_seconds(best['unit_high_s'])});"
        f" {best['usd_per_gpu_hour']:.2f} USD per GPU-hour (seen {best['price_observed_on']})."
        f"{unlisted(best['age_days'], best['price_book'])}"
    )
    source_ids = sorted({row["source_id"], *(name for option in shown for name in option["source_ids"])})
    return {
        "kind": "processing",
        **frame(request.to_dict(), market.facts.as_of, market.facts.catalog_version),
        "lead": lead,
        "said": _statements(task, row, request, best),
        "unit": task.unit,
        "options": shown,
        "offers_ranked": len(ranked),
        "offers": offer_rows,
        "warnings": [_ASSUMED],
        "sources": cited(market.facts.sources, source_ids)
        | cited({row["source_id"]: catalog.source(row["source_id"])}, [row["source_id"]]),
    }


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
    # without a load, always at work
    busy = request.utilisation_fraction if request.utilisation_given or request.requests_per_s else 1.0
    price = float(terms.usd_per_gpu_hour[number])
    slow, typical, fast = (seconds / SECONDS_PER_HOUR / busy for seconds in speed.seconds)  # hours of a unit
    gpus = int(market.supply.unit_gpus[number])
    needed = None
    if request.requests_per_s is not None:
        needed = max(1, int(np.ceil(request.requests_per_s * task.request_units * speed.seconds.typical / busy - 1e-9)))
        needed = int(np.ceil(needed / gpus) * gpus)  # machines are bought whole
    row = {  # its budget joins it once all offers are known
        "rank": 0,
        **seller(offer),
        "gpus": needed or gpus,
        "instances": (needed or gpus) // gpus,
        "precision": precision,
        "usd_per_unit": price * typical,
        # the fast end of the speed at the low end of the price
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
        **seen(offer, terms, number, 0.0),
        "source_ids": [offer.source_id],
        "notes": old_price(offer, terms, number),
    }
    return cast(ProcessingOption, row)


def _table(
    request: InferenceRequest, market: Market, rows: Mapping[int, ProcessingOption], left: Mapping[int, str]
) -> OfferTable:
    """Return the table of offers, each by its place in the market: one rank a product, in the order of every answer."""
    if request.max_cost_usd is not None and request.requests_per_s is None:
        raise UsageError("--budget is of a month: add --requests-per-s, the load.")
    numbers, options = np.array([*rows], np.int64), [*rows.values()]
    # with a load the month counts, which buys whole machines; without one, the unit
    months = np.array([option["usd_per_month"] or 0.0 for option in options])
    cost = np.where(months > 0, months, [option["usd_per_unit"] for option in options])
    seconds = np.array([option["unit_s"] for option in options])
    kwh = np.array([option["unit_kwh"] or np.inf for option in options])
    rules = [OPTIONS[option["option"]] for option in options]
    stands = standing(
        False,
        [rule.interruptible for rule in rules],
        [rule.family == "committed" and not request.option for rule in rules],  # binds for longer than anyone asked
    )
    chance = chances(market.terms, numbers, np.array([option["gpus"] for option in options]))
    high = cost * [option["usd_per_unit_high"] / option["usd_per_unit"] for option in options]
    every = np.ones(len(options), bool)
    parts = budgets(cost, high, chance, every, market.terms.fresh[numbers], market.supply.seller[numbers])
    goal = {"budget": parts.budget, "expected": parts.expected, "quoted": cost, "time": seconds}[request.rank_by]
    for option, budget_ratio, share in zip(options, parts.budget / cost, chance, strict=True):
        option["budget_usd_per_unit"] = float(budget_ratio * option["usd_per_unit"])
        option["chance_available_fraction"] = float(share)
    order = in_order(
        Ordering(
            stands,
            goal={"latency": seconds, "carbon": kwh}.get(request.optimize, goal),
            unsure=~sure(market.terms, numbers, chance),
            cost=parts.expected,
            time=seconds,
            gpus=np.array([option["gpus"] for option in options]),
            age_days=np.zeros(len(options)),
            id=market.supply.id_place[numbers],
        )
    )
    budget = np.inf if request.max_cost_usd is None else request.max_cost_usd
    needed = months * parts.budget / cost  # a month's budget; 0 without a load, which no budget excludes
    if not (needed <= budget).any():
        raise OverBudgetError(
            f"the lowest budget of a month is {needed.min():,.2f} USD, over the budget of {budget:,.2f} USD."
        ).offering(budget=int(np.ceil(needed.min())))
    # one rank a product: what follows in other regions stands behind the first
    ranks: dict[tuple[Any, ...], int] = {}
    lines = []
    for at in order[needed[order] <= budget].tolist():
        option, number = options[at], int(numbers[at])
        product = _product_of(option)
        first = product not in ranks
        place = ranks.setdefault(product, len(ranks) + 1)
        code = int(stands[at])
        if first:
            lines.append(OfferLine(number, number, place, code, ""))
        else:
            lines.append(OfferLine(number, number, None, code, f"rank {place} in another region", place))
    dear = {
        int(numbers[at]): f"needs {needed[at]:,.2f} USD a month, over the budget" for at in order if needed[at] > budget
    }
    lines += [OfferLine(number, number, None, LEFT_OUT, reason) for number, reason in {**dear, **left}.items()]
    # what is best at something is known of cost alone: a unit has no other time than its speed
    cheapest = next(line.case for line in lines if line.rank == 1)
    return OfferTable(tuple(lines), {} if request.optimize != "cost" else {cheapest: [LOWEST]}, frozenset())


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def _statements(
    task: tasks.Task, row: Mapping[str, Any], request: InferenceRequest, best: ProcessingOption
) -> list[str]:
    """Say what the answer takes for granted."""
    size = (
        f"{task.parameters / 1e9:.3g} billion parameters"
        if task.parameters >= 1e9
        else f"{task.parameters / 1e6:.0f} million parameters"
    )
    notes = row["notes"][:1].upper() + row["notes"][1:]
    more = " with its text encoders and image decoder" if row["text_parameters"] else ""
    lines = [
        f"{task.name} is {tasks.NAMES[task.kind]}: {size}{more}, {task.flop.typical / 1e12:,.3g} TFLOP per {task.unit}"
        f" ({'; '.join(task.assumptions)}). {notes}."
    ]
    if request.requests_per_s is not None:
        requests = f"requests of {task.request_units * 1e6:,.0f} tokens"
        if task.request_units == 1.0:
            requests = tasks.PLURALS[task.unit]
        lines.append(
            f"{request.requests_per_s:,.6g} {requests} a second at"
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
    sight = tasks.sight(row, side or row["side"])
    shape = transformer.stack([catalog.architecture(request.model)])
    alike = sight.flop / (2 * float(transformer.active_parameters(shape)[0]))
    return replace(request, prompt_tokens=request.prompt_tokens + images * (sight.tokens + alike))


def image_said(row: Mapping[str, Any], images: float, side: int | None, catalog: Catalog, answer: Inference) -> str:
    """Say what an image is in tokens and in money on the first offer."""
    side = side or int(row["side"])
    sight = tasks.sight(row, side)
    shape = transformer.stack([catalog.architecture(str(row["base"]))])
    alike = sight.flop / (2 * float(transformer.active_parameters(shape)[0]))
    usd = (sight.tokens + alike) / 1e6 * answer["options"][0]["usd_per_mtok_input"]
    remark = f"{images:g} in each prompt" if images else "none in the prompts above: --images says how many"
    return (
        f"An image of {side} × {side} pixels becomes {sight.tokens:,} tokens and costs about {1000 * usd:.3g} USD per"
        f" thousand on the first offer, its encoder of {sight.parameters / 1e6:.0f} million parameters (counted as"
        f" {alike:,.0f} prompt tokens more) among it; {remark}."
    )
