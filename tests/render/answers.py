"""Answers for the tests: real ones from the shipped catalog, and a hand-made one that can be checked by eye."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import gpucost
from gpucost.answers.training import Estimate, RankedOption
from gpucost.ask.speed import roofline
from gpucost.money.training_bill import INPUT_NAMES
from gpucost.render.build import document
from gpucost.render.document import KeyFigures, Table, heading_of

DAY = "2026-11-20"

AGREEMENTS = str(Path(__file__).parent / "agreements.csv")


@cache
def training() -> Any:
    """64 H100 on demand for 8B on 100B tokens."""
    return gpucost.estimate(model="8b", tokens="100b", gpu="h100-sxm", gpus=64, top=8).to_dict()


@cache
def ownership() -> dict[str, Any]:
    """64 H100 over four years, with a loan and a covenant."""
    asked = {"gpu": "h100-sxm", "gpus": 64, "utilisation": "70%", "years": 4, "rent": 2.35, "draws": 200}
    return gpucost.tco(**asked, financing="loan", set={"min_dscr_ratio": 1.2}).to_dict()


@cache
def serving() -> dict[str, Any]:
    """A 70B model in fp8 for 5 billion tokens a month on H100 on demand."""
    return gpucost.inference(**SERVING).to_dict()


SERVING: dict[str, Any] = {
    "model": "70b",
    "prompt_tokens": 1000,
    "output_tokens": 250,
    "tokens_per_month": "5b",
    "precision": "fp8",
    "gpu": "h100-sxm",
    "option": "on_demand",
    "top": 5,
}


@cache
def workload() -> dict[str, Any]:
    """Owning for a training workload, after tax, in another currency, against a hosted API."""
    asked = {"model": "8b", "tokens": "1t", "runs_per_year": 10, "currency": "EUR", "usd_per_unit": 1.1, "draws": 50}
    made = gpucost.tco(gpu="h100-sxm", gpus=64, provider="crusoe", api_usd_per_mtok=0.2, as_of=DAY, **asked)
    return made.to_dict()


@cache
def mix() -> dict[str, Any]:
    """A growing demand over a year."""
    return gpucost.mix(constant=64, growth="20%", months=12, gpu="h100-sxm", as_of=DAY).to_dict()


def reconciliation() -> Mapping[str, Any]:
    """A month of serving against itself, part of it in another currency, by tag."""
    import tempfile

    from tests.invoices.charges import charge, write

    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{name}.csv" for name in ("plan", "invoice")]
        strange = charge(BillingCurrency="EUR", SkuId="other", CommitmentDiscountStatus="")
        write(names[0], charge())
        write(names[1], charge(cost=14), strange)
        return gpucost.reconcile(names[1], names[0], showback="team").payload


def comparison() -> Mapping[str, Any]:
    """Two estimates that differ in their tokens."""
    return gpucost.compare(training(), other_training()).payload


@cache
def other_training() -> Any:
    """Half the tokens."""
    return gpucost.estimate(model="8b", tokens="50b", gpu="h100-sxm", gpus=64, top=1).payload


def rerun() -> Mapping[str, Any]:
    """An estimate against another."""
    from gpucost.training.rerun import verdict

    return verdict(training(), other_training())


def sweep() -> Mapping[str, Any]:
    """One request that can be answered, and one that cannot."""
    return gpucost.sweep(model="8b", tokens="1b", gpu="h100-sxm,v100-sxm2-16gb", gpus="8,16", as_of=DAY).payload


def scenario() -> Mapping[str, Any]:
    """A training part with its background."""
    part = {"name": "Pretrain", "model": "8b", "tokens": "20b", "gpus": 64, "top": 2}
    return gpucost.report({"name": "One question", "training": [part]}).payload


def reported() -> Mapping[str, Any]:
    """The estimate inside a report, with the history of its price and its roofline."""
    found: Mapping[str, Any] = scenario()["parts"][0]["payload"]
    return found


def validation(kind: str) -> Mapping[str, Any]:
    """Predictions against the shipped measurements."""
    from datetime import date

    from gpucost.calibration.fits import VALIDATIONS
    from gpucost.calibration.measurements import answer
    from gpucost.catalog import open_catalog

    return answer(VALIDATIONS[kind](open_catalog(DAY)), {"kind": kind}, date(2026, 11, 20), "test")


# every question, asked for real
ASKED: dict[str, Callable[[], Mapping[str, Any]]] = {
    "estimate": training,
    "estimate in a report": reported,
    "inference": serving,
    "inference of a model that nobody hosts": lambda: gpucost.inference("13b", gpu="h100-sxm", top=1).payload,
    "processing": lambda: gpucost.inference("sdxl", gpu="h100-sxm", top=2).payload,
    "tco": ownership,
    "tco of a workload": workload,
    "mix": mix,
    "reconciliation": reconciliation,
    "commitment": lambda: gpucost.commit([10, 20, 40, 30], on_demand=4, committed=2, agreements=AGREEMENTS).payload,
    "comparison": comparison,
    "comparison of plans": lambda: gpucost.compare(ownership(), workload()).payload,
    "side by side": lambda: gpucost.compare(model="8b", gpu="h100-sxm,v100-sxm2-16gb", tokens="1b").payload,
    "rerun": rerun,
    "sweep": sweep,
    "scenario": scenario,
    "throughput": lambda: gpucost.throughput("8b", "h100-sxm", 8).payload,
    "throughput of a layout": lambda: gpucost.throughput("8b", "h100-sxm", 8, tensor=2).payload,
    "throughput of serving": lambda: gpucost.throughput("8b", "h100-sxm", serving=True, batch=[1, 64]).payload,
    "roofline": lambda: roofline("h100-sxm", matmul="8192x8192x8192").payload,
    "roofline of a step": lambda: roofline("h100-sxm", model="8b", gpus=8).payload,
    "fit": lambda: gpucost.fit("8b", "h100-sxm").payload,
    "fit that does not": lambda: gpucost.fit("70b", "h100-sxm", gpus=1).payload,
    "fit everywhere": lambda: gpucost.fit("13b").payload,
    "fit for serving": lambda: gpucost.fit("70b", serving=True, tpot="50ms").payload,
    "choice": lambda: gpucost.choose(budget="2k", workload={"a": "desk 8b", "b": "serving 8b"}).payload,
    "audit": lambda: gpucost.audit(model="8b", tokens="100b", gpu="a100-80gb", gpus=8, days=8, cost=6291).payload,
    "validation of training": lambda: validation("training"),
    "validation of memory": lambda: validation("memory"),
    "validation of serving": lambda: validation("serving"),
}
QUESTIONS = {name: cache(ask) for name, ask in ASKED.items()}  # once in a process


def shown_keys(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys that the document of an answer shows in its tables and lists of figures."""
    from gpucost.answers.schema import answer_schema

    made = document(payload)
    labels = set()
    for section in made.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                yield from (column.key for column in block.columns)
            elif isinstance(block, KeyFigures):
                labels |= {fact.label for fact in block.items}
    yield from (key for key in keys_of(answer_schema(payload["kind"])) if heading_of(key) in labels)


def keys_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield every key of a schema."""
    for key, inner in schema.get("properties", {}).items():
        yield key
        yield from keys_of(inner)
    beside = [schema[name] for name in ("items", "additionalProperties") if isinstance(schema.get(name), dict)]
    for inner in [*beside, *schema.get("anyOf", ())]:
        yield from keys_of(inner)


def by_hand() -> Estimate:
    """Two offers in round figures: 1,000 GPU-hours at 2 and at 3 dollars, plus 50 GB of egress at 10 cents."""
    return {
        "kind": "estimate",
        "schema_version": "2",
        "gpucost_version": "0.1.0",
        "request": {"model": "8b", "tokens": 36e9},
        "as_of": "2026-11-20",
        "catalog_version": "test",
        "calibration": "test",
        "lead": "About 2,005 USD.",
        "workload": {
            "model": "llama-3.1-8b",
            "model_status": "sourced",
            "parameters": 8.03e9,
            "active_parameters": 8.03e9,
            "trained_parameters": 8.03e9,
            "trained_tokens": 36e9,
            "sequence_tokens": 8192,
            "global_batch": 512,
            "precision": "bf16",
            "method": "full",
            "model_flop_per_token": 5e10,
            "model_flop": 1.8e21,
        },
        "options": [offer(1, "alpha", 2.0), offer(2, "beta", 3.0)],
        "options_found": 2,
        "offers_found": 2,
        "offers": [
            {
                "rank": None,
                "labels": [],
                "standing": "left out",
                "reason": "no named fabric",
                "offer_id": "gamma/1x",
                "provider": "gamma",
                "instance_type": "1x",
                "region": None,
                "regions": [],
                "option": "on_demand",
                "term_months": 0,
                "gpu": "h100-sxm5-80gb",
                "gpus": 1,
                "usd_per_gpu_hour": 1.0,
                "price_observed_on": "2026-11-01",
                "age_days": 1,
                "front": False,
                "days": None,
                "cost_usd": None,
                "cost_low_usd": None,
                "cost_high_usd": None,
            }
        ],
        "warnings": ["Prices of beta are old."],
        "sources": {
            f"{name}-list": {
                "publisher": name.title(),
                "title": "Price list",
                "locator": f"https://{name}.example/prices",
                "published_on": "2026-11-01",
                "accessed_on": "2026-11-02",
            }
            for name in ("alpha", "beta")
        },
        "scaling": [
            {
                "gpus": count,
                "nodes": 1,
                "days": 42 / count,
                "cost_usd": 2000.0 + count,
                "cost_low_usd": 1800.0 + count,
                "cost_high_usd": 2200.0 + count,
                "mfu_fraction": 0.4,
                "tokens_per_s_per_gpu": 10_000.0,
                "chosen": count == 8,
            }
            for count in (4, 8, 16)
        ],
        "alternatives": [],
        "drivers": [],
        "not_included": ["taxes"],
        "assumptions": [],
    }


def counted() -> Estimate:
    """The answer by hand with two options whose bills follow from their factors, as a file that is read again needs."""
    return {**by_hand(), "options": deepcopy(training()["options"][:2])}


_STRETCHES = ("stretch_paid_ratio", "stretch_low_ratio", "stretch_high_ratio")


def offer(rank: int, provider: str, usd_per_gpu_hour: float) -> RankedOption:
    """One offer of the answer by hand."""
    cost = 1000 * usd_per_gpu_hour + 5
    source = {"source_id": f"{provider}-list", "status": "sourced", "note": ""}
    return {
        "rank": rank,
        "offer_id": f"{provider}/8x",
        "provider": provider,
        "instance_type": "8x",
        "region": "us",
        "region_scope": "country",
        "option": "on_demand",
        "tier": None,
        "term_months": 0,
        "payment": "none",
        "gpu": "h100-sxm5-80gb",
        "gpus": 8,
        "nodes": 1,
        "layout": {
            "gpus": 8,
            "tensor": 1,
            "pipeline": 1,
            "context": 1,
            "expert": 1,
            "data": 8,
            "sharding": 1,
            "micro_batch": 1,
            "global_batch": 512,
            "virtual_stages": 1,
            "recompute": "none",
            "precision": "bf16",
        },
        "memory_gb": 60.0,
        "tokens_per_s_per_gpu": 10_000.0,
        "tokens_per_s_per_gpu_low": 8_000.0,
        "tokens_per_s_per_gpu_high": 12_500.0,
        "mfu_fraction": 0.4125,
        "speed_confidence": "high",
        "days": 5.25,
        "days_low": 4.2,
        "days_high": 6.5,
        "gpu_hours": 1000.0,
        "cost_usd": cost,
        "cost_low_usd": cost * 0.8,
        "cost_high_usd": cost * 1.25,
        "usd_per_mtok": cost / 36_000,
        "energy_kwh": 1051.875,
        "kgco2e": 386.0,
        "usd_per_gpu_hour": usd_per_gpu_hour,
        "price_observed_on": "2026-11-01",
        "age_days": 19,
        "price_stale": False,
        "price_book": "shipped",
        "price_kind": "list",
        "price_confidence": "high",
        "cash_usd": cost,
        "amortised_usd": cost,
        "exposure_usd": cost,
        "unused_usd": 0.0,
        "interruptions": 0.1,
        "interruption_rate_measured": True,
        "checkpoint_interval_hours": 10.0,
        "stretch_paid_ratio": 1.0,
        "stretch_paid_low_ratio": 1.0,
        "stretch_paid_high_ratio": 1.0,
        "stretch_calendar_ratio": 1.0,
        "stretch_spread_ratio": 0.0,
        "goodput_fraction": 1.0,
        "components": {"matrix_s": 30.0, "attention_s": 10.0},
        "source_ids": [f"{provider}-list"],
        "lines": [
            {
                "name": "compute",
                "quantity": 1000.0,
                "unit": "GPU-hour",
                "unit_price_usd": usd_per_gpu_hour,
                "cost_usd": 1000 * usd_per_gpu_hour,
                **source,  # type: ignore[typeddict-item]
            },
            {
                "name": "egress",
                "quantity": 50.0,
                "unit": "GB",
                "unit_price_usd": 0.1,
                "cost_usd": 5.0,
                **source,  # type: ignore[typeddict-item]
            },
        ],
        "notes": [],
        "factors": dict.fromkeys((*INPUT_NAMES, *_STRETCHES), 1.0),
        "also_in": [],
    }
