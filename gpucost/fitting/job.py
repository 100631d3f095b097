"""What is to fit: a model, a chip and a recipe, read from words and checked."""

import math
from dataclasses import dataclass, field
from typing import Any

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.columns import METHODS, RECOMPUTES, code_of
from gpucost.physics.training.defaults import DEFAULT_SEQUENCE, default_sequence
from gpucost.physics.training.memory_recipe import OFFLOADS, OPTIMIZERS, STYLES, MemoryRecipe, memory_recipe
from gpucost.types import Accelerator, Architecture, System
from gpucost.workloads.speeds import key_of
from gpucost.workloads.training import DEFAULT_RANK

AUTO = "auto"
ADAPTER_SOFTWARE = "library"  # adapters are mostly trained with transformers and peft, which keep fp32 copies
DEGREES = ("tensor", "pipeline", "context", "expert", "sharding")


@dataclass(frozen=True, slots=True)
class MemoryJob:
    """A training job whose memory is asked for; degrees that are not given are searched."""

    architecture: Architecture
    accelerator: Accelerator
    system: System
    gpus: int | None = None  # None: the fewest that fit
    method: str = "full"
    optimizer: str = "adamw"
    sequence_tokens: int = DEFAULT_SEQUENCE
    micro_batch: int = 1
    recompute: str = AUTO
    loss_chunk_tokens: int = 0
    offload: str = "none"
    lora_rank: int = DEFAULT_RANK
    software: str = "fused"
    flash: bool = True
    degrees: dict[str, int] = field(default_factory=dict)

    def recipe(self) -> MemoryRecipe:
        """Return what the job keeps in memory."""
        return memory_recipe(
            self.sequence_tokens,
            method=self.method,
            style=self.software,
            optimizer=self.optimizer,
            adapter_rank=self.lora_rank,
            loss_chunk_tokens=self.loss_chunk_tokens,
            offload=self.offload,
        )


def whole(value: Any, what: str) -> int:
    """Read a positive whole number; say what is wrong with anything else."""
    number = float(value)
    if not math.isfinite(number) or number < 1 or number != int(number):
        raise UsageError(f"{what}: {value!r} is not a positive whole number.")
    return int(number)


def read_job(catalog: Catalog, model: Any, gpu: str, *, system: str | None = None, **wanted: Any) -> MemoryJob:
    """Resolve names and check numbers."""
    key = key_of(catalog, gpu, system)
    architecture = model if isinstance(model, Architecture) else catalog.architecture(model)
    given = {name: value for name, value in wanted.items() if value is not None}
    for name, names in (
        ("method", METHODS),
        ("optimizer", tuple(OPTIMIZERS)),
        ("software", STYLES),
        ("offload", OFFLOADS),
    ):
        if name in given:
            code_of(given[name], names, name)
    if given.get("recompute", AUTO) != AUTO:
        code_of(given["recompute"], RECOMPUTES, "recompute")
    counts: dict[str, Any] = {
        name: whole(given.pop(key), f"--{key.replace('_', '-')}")
        for key, name in (
            ("gpus", "gpus"), ("sequence", "sequence_tokens"), ("micro_batch", "micro_batch"),
            ("lora_rank", "lora_rank"), ("loss_chunk", "loss_chunk_tokens"),
        )
        if key in given
    }  # fmt: skip
    counts.setdefault("sequence_tokens", default_sequence(architecture))
    if given.get("method", "full") != "full":
        given.setdefault("software", ADAPTER_SOFTWARE)
    degrees = {name: read_degree(name, given.pop(name)) for name in DEGREES if name in given}
    check_degrees(architecture, counts.get("gpus"), degrees)
    return MemoryJob(architecture, key.accelerator, key.system, degrees=degrees, **counts, **given)


def read_degree(name: str, value: Any) -> int:
    """Read a degree, or a sharding stage of 0 to 3."""
    if name != "sharding":
        return whole(value, f"--{name}")
    if value not in (0, 1, 2, 3):
        raise UsageError(f"--sharding: {value!r} is not 0 (none), 1 (states), 2 (and gradients) or 3 (and weights).")
    return int(value)


def check_degrees(a: Architecture, gpus: int | None, degrees: dict[str, int]) -> None:
    """Refuse degrees that no layout can have."""
    tensor, pipeline, expert = (degrees.get(name, 1) for name in ("tensor", "pipeline", "expert"))
    if a.heads % tensor:
        options = ", ".join(str(d) for d in range(1, min(a.heads, 64) + 1) if a.heads % d == 0)
        raise UsageError(f"tensor {tensor} does not divide the {a.heads} heads of {a.name}. Try one of {options}.")
    if pipeline > a.layers:
        raise UsageError(f"pipeline {pipeline} exceeds the {a.layers} layers of {a.name}.")
    if expert > 1 and (not a.experts or a.experts % expert):
        have = f"must divide its {a.experts} experts" if a.experts else "needs a mixture of experts"
        raise UsageError(f"expert {expert}: {a.name} {have}.")
    parallel = tensor * pipeline * degrees.get("context", 1)
    if gpus is not None and gpus % parallel:
        raise UsageError(
            f"tensor × pipeline × context = {parallel} does not divide {gpus} GPUs. Use a multiple of {parallel}."
        )
