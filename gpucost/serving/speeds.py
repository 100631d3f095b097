"""How fast accelerators serve a model at batches: the speed of `inference`, `fit --serving` and `audit`, by batch."""

from collections.abc import Sequence

from gpucost.answers.common import cited, frame
from gpucost.answers.serving import ServingSpeeds, SpeedAtBatch
from gpucost.catalog import Catalog
from gpucost.errors import NothingFitsError
from gpucost.market.facts import market_of
from gpucost.market.hires import cheapest
from gpucost.serving.costing import MTOK
from gpucost.serving.request import InferenceRequest
from gpucost.serving.run import served_by
from gpucost.units import SECONDS_PER_HOUR
from gpucost.workloads.deployment import best_plan, served, serving_speed
from gpucost.workloads.service import format_note
from gpucost.workloads.speeds import key_of

USUAL_BATCHES = (1, 8, 64)  # a chat of one's own, a small service, a full one
_ENDS = ("output_tokens_per_s_low", "output_tokens_per_s", "output_tokens_per_s_high")


def speeds_payload(
    catalog: Catalog, request: InferenceRequest, names: Sequence[str], gpus: int | None, batches: Sequence[int]
) -> ServingSpeeds:
    """Return the output tokens per second of each accelerator at each batch; by default the fewest that serve."""
    market, architecture = market_of(catalog), catalog.architecture(request.model)
    rows: list[SpeedAtBatch] = []
    sources: list[str] = []
    for name in names:
        key = key_of(catalog, name)
        count = gpus or catalog.gpus_in(name)
        if count is None:
            plans = served(catalog, architecture, [key], request)
            plan, _ = best_plan(plans, 0, None)  # the fewest that serve; where nothing does, one says why
            count = int(plans.gpus[plan]) if plan is not None and plans.serves[plan] else 1
        hire = cheapest(market, key.accelerator.id, count)
        sources += [hire.offer.source_id] if hire else []
        for batch in batches:
            speed = serving_speed(catalog, architecture, key, request, count, batch)
            row: SpeedAtBatch = {
                "gpu": key.accelerator.id,
                "gpus": count,
                "batch": batch,
                "precision": request.written_in(architecture, key.accelerator),
                "replicas": None,
                "layout": None,
                "output_tokens_per_s": None,
                "output_tokens_per_s_low": None,
                "output_tokens_per_s_high": None,
                "output_tokens_per_s_each": None,
                "usd_per_mtok": None,
                "provider": hire.offer.provider if hire else None,
                "option": hire.offer.option if hire else None,
                "usd_per_gpu_hour": hire.usd_per_gpu_hour if hire else None,
                "price_observed_on": hire.offer.observed_on.isoformat() if hire else None,
            }
            if speed is not None:  # else the batch does not fit, and the row says for what price
                d = speed.deployment
                # what a million tokens cost, prompts and outputs, on accelerators that are always as busy
                tokens_per_s = speed.typical * request.tokens_per_request / request.output_tokens
                tokens_per_hour = tokens_per_s * SECONDS_PER_HOUR
                row |= {
                    "precision": d.format,
                    "replicas": speed.replicas,
                    "layout": {"tensor": d.tensor, "data": d.data, "pipeline": d.pipeline},
                    "output_tokens_per_s": speed.typical,
                    "output_tokens_per_s_low": speed.low,
                    "output_tokens_per_s_high": speed.high,
                    "output_tokens_per_s_each": speed.typical / batch,
                    "usd_per_mtok": None if hire is None else hire.usd_per_hour / tokens_per_hour * MTOK,
                }
            rows.append(row)
    timed = [row for row in rows if row["output_tokens_per_s"] is not None]
    if not timed:
        groups = ", ".join(dict.fromkeys(f"{row['gpus']} × {row['gpu']}" for row in rows))
        raise NothingFitsError(
            f"{architecture.name} in {rows[0]['precision']} does not fit {groups} at a batch of"
            f" {min(batches):,}. Try more --gpus or narrower --weights; `gpucost fit --serving` finds the fewest."
        )
    # the fastest accelerators at the largest batch that they hold, and of one sequence
    best = max(timed, key=lambda row: row["output_tokens_per_s"] or 0.0)
    low, typical, high = (best[name] or 0.0 for name in _ENDS)  # type: ignore[literal-required]
    lead = (
        f"{architecture.name} on {best['gpus']} × {best['gpu']} writes about {typical:,.0f} tokens a second"
        f" ({low:,.0f} to {high:,.0f}) with {best['batch']:,} sequences at once,"
        f" {best['output_tokens_per_s_each']:,.0f} each."
    )
    return {
        "kind": "serving_speed",
        **frame(request.to_dict() | {"batch": list(batches), "gpus": gpus}, catalog.as_of, catalog.version),
        "lead": lead,
        "model": architecture.name,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
        "said": [
            f"{architecture.name}, {format_note(architecture, request)}; engine {request.engine}, {served_by(request)};"
            f" {request.prompt_tokens:,.0f} tokens in and {request.output_tokens:,.0f} out."
        ],
        "rows": rows,
        "warnings": [*catalog.taken(*names), *architecture.warnings],
        "sources": cited(market.facts.sources, sources),
    }
