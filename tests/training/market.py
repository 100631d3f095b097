"""A small market with a physics of round numbers, so that every figure of a test can be checked by hand."""

from datetime import date

import numpy as np

from gpucost.ask.estimate import request_of
from gpucost.market.embedded import embed
from gpucost.market.facts import Facts, make_market, make_offer
from gpucost.market.supply import sold_nodes
from gpucost.physics.calibration import Calibration
from gpucost.physics.columns import layout_columns
from gpucost.physics.training.cases import PARTS
from gpucost.training import run
from gpucost.types import Accelerator, Architecture, Layout, System
from gpucost.workloads import speeds

TODAY = date(2026, 6, 1)
CALIBRATION = Calibration({}, {})

MODEL = Architecture(
    name="round-8b",
    family="test",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn_hidden=14336,
    gated=True,
    vocab=128256,
    tied_embeddings=False,
    max_sequence_tokens=8192,
    source_id="model-card",
)

FAST = Accelerator(
    id="fast",
    vendor="V",
    name="Fast",
    family="hopper",
    form_factor="SXM5",
    year=2022,
    memory_gib=80.0,
    hbm_gb_per_s=3350.0,
    bf16_tflops=1000.0,
    scaleup_gb_per_s=450.0,
    scaleup_gpus=8,
    tdp_w=700.0,
    source_id="sheet",
)
SLOW = Accelerator(
    id="slow",
    vendor="V",
    name="Slow",
    family="ampere",
    form_factor="SXM4",
    year=2020,
    memory_gib=80.0,
    hbm_gb_per_s=2039.0,
    bf16_tflops=312.0,
    scaleup_gb_per_s=300.0,
    scaleup_gpus=8,
    tdp_w=400.0,
    source_id="sheet",
)
TOKENS_PER_S = {"fast": 10_000.0, "slow": 4_000.0}  # of one accelerator
SPREAD = 1.25  # high ÷ typical and typical ÷ low
FEWEST = 2  # the model does not fit on one


def node(accelerator: Accelerator, gpus: int = 8, network: float | None = 50.0) -> System:
    return System(
        id=f"{accelerator.id}-{gpus}-{network}",
        name="node",
        kind="node",
        accelerator_id=accelerator.id,
        gpus=gpus,
        scaleup_gb_per_s=accelerator.scaleup_gb_per_s,
        scaleup_gpus=gpus,
        scaleout_gb_per_s=network,
        max_power_kw=gpus * 1.25,
    )


def offer(price: float, gpu: str = "fast", gpus: int = 8, **more):
    known = {
        "offer_id": f"{more.get('provider', 'acme')}/{gpu}/{gpus}/{more.get('option', 'on_demand')}/{price}",
        "offer_kind": "offer",
        "provider": "acme",
        "instance_type": f"{gpus}x {gpu}",
        "gpu": gpu,
        "gpu_assumed": False,
        "gpus": gpus,
        "region_scope": "region",
        "region": "us-east-1",
        "option": "on_demand",
        "billing": "per_use",
        "term_months": 0,
        "payment": "none",
        "usd_per_hour": price * gpus,
        "usd_per_gpu_hour": price,
        "observed_on": TODAY,
        "source_id": "price-page",
        "confidence": "high",
    }
    return make_offer({**known, **more})


def item(name: str, typical: float, low: float | None = None, high: float | None = None) -> dict:
    return {"item": name, "low": low, "typical": typical, "high": high, "unit": "", "source_id": "book"}


ASSUMPTIONS = (
    item("job_interruptions_llama3", 0.173),
    item("node_failure_rate_a100", 6.5, 2.34, 8.0),
    item("tdp_fraction_gpu_server_training", 0.75),
    item("server_to_chip_power_ratio.h100", 1.82),
    item("pue.hyperscaler", 1.1),
    item("pue.neocloud_or_colo", 1.3),
    item("rental_price_decline", 0.25, -0.15, 0.45),
    item("storage_rental_parallel_fs", 0.1),
    item("bandwidth_egress_cloud", 0.05),
    item("grid_carbon.world", 0.48),
    item("grid_carbon.us", 0.4),
)

# AWS-like buckets: 5 to 10 % of instances are interrupted in a month.
BUCKET = {
    "provider": "acme",
    "instance_type": "8x fast",
    "region": "us-east-1",
    "kind": "bucket",
    "interruptions_per_instance_hour_low": 7.0e-5,
    "interruptions_per_instance_hour": None,
    "interruptions_per_instance_hour_high": 1.44e-4,
    "availability_fraction": None,
    "observed_on": date(2026, 5, 1),
    "source_id": "advisor",
}


def facts(offers, systems=None, spot=()) -> Facts:
    """Return facts over offers; without `systems`, units of 8 are nodes with a network."""
    chips = {"fast": FAST, "slow": SLOW}
    found = systems or [node(chips[row.gpu], row.gpus, 50.0 if row.gpus >= 8 else None) for row in offers]
    return Facts(
        as_of=TODAY,
        catalog_version="test",
        offers=tuple(offers),
        accelerators=chips,
        systems=tuple(found),
        nodes={name: node(chip) for name, chip in chips.items()},
        sold=sold_nodes(offers),
        assumptions=ASSUMPTIONS,
        services=(),
        spot=tuple(spot),
        regions=({"provider": "any", "region": "us", "carbon_item": "grid_carbon.us"},),
        providers=(),
        sources={},
    )


def round_physics(workload, keys, gpus, calibration):
    """Every accelerator runs at its round speed, whatever the cluster; below FEWEST the model does not fit."""
    count = len(keys)
    fits = np.asarray(gpus) >= FEWEST
    speed = np.where(fits, np.array([TOKENS_PER_S[key.accelerator.id] for key in keys]), np.nan)
    return speeds.Speeds(
        fits=fits,
        reason=np.where(fits, 0, 1),
        tokens_per_s_per_gpu=speed,
        tokens_per_s_per_gpu_low=speed / SPREAD,
        tokens_per_s_per_gpu_high=speed * SPREAD,
        tokens_per_s_per_gpu_low_fused=speed / SPREAD,
        tokens_per_s_per_gpu_high_plain=speed * SPREAD,
        mfu_fraction=np.full(count, 0.4),
        peak_tflops=np.array([key.accelerator.bf16_tflops for key in keys]),
        memory_gb=np.full(count, 60.0),
        confidence=np.full(count, "high", dtype=object),
        parts_s=np.tile(np.array([1.0] + [0.0] * (len(PARTS) - 1)), (count, 1)),
        layout=layout_columns([Layout(gpus=int(n), data=int(n), global_batch=1024) for n in gpus]),
    )


def ask(**wanted):
    """Return a request for 100B tokens of the round model unless told otherwise."""
    return request_of({"model": "round-8b", "tokens": "100b", **wanted}, TODAY)


def answer(offers, systems=None, spot=(), **wanted) -> dict:
    """Return the answer of the engine over a small market."""
    found = facts(offers, systems, spot)
    mask = np.ones(len(offers), bool)
    return run.answer_request(ask(**wanted), MODEL, make_market(found), mask, CALIBRATION) | {
        "facts": embed(found, mask, MODEL)
    }
