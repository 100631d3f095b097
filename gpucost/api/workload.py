"""Where owning asks serving: how fast the cheapest deployment of a model serves on an accelerator."""

from collections.abc import Mapping
from typing import Any, cast

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.ownership.plan import Given
from gpucost.serving.run import infer, request_of


def serving_speed(catalog: Catalog, asked: Mapping[str, Any]) -> tuple[Given, float]:
    """Return tokens per second and GPU (prompt and reply together) of the cheapest deployment, and GPUs per server."""
    if not asked.get("model") or not asked.get("gpu"):
        raise UsageError("a serving load needs --model and --gpu, or tokens_per_s_per_gpu, beside tokens_per_month.")
    lengths = {name: asked[name] for name in ("prompt_tokens", "output_tokens") if name in asked}
    gpu = catalog.accelerator(str(asked["gpu"])).id
    best = infer(request_of(catalog, str(asked["model"]), gpu=gpu, **lengths), catalog)["options"][0]
    speed, factors = float(best["tokens_per_s_per_gpu"]), cast(dict[str, float], best["factors"])
    text = f"{asked['model']} on {best['gpu']} × {factors['replica_gpus']:g}, {best['precision']}, {best['engine']}"
    ends = (speed * factors["speed_low_ratio"], speed * factors["speed_high_ratio"])
    server = catalog.default_system(gpu)
    return Given(speed, *ends, text, "derived"), max(float(factors["replica_gpus"]), float(server.gpus))
