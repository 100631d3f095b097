"""What is to fit: a model, a chip and a recipe, read from words and checked."""

from dataclasses import dataclass, field
from typing import Any

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.physics.training.defaults import DEFAULT_SEQUENCE, default_sequence
from gpucost.physics.training.memory_recipe import MemoryRecipe, memory_recipe
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


def read_job(catalog: Catalog, model: Any, gpu: str, *, system: str | None = None, **wanted: Any) -> MemoryJob:
    """Resolve names, and hold what was read of the arguments against the model."""
    key = key_of(catalog, gpu, system)
    architecture = model if isinstance(model, Architecture) else catalog.architecture(model)
    given = {name: value for name, value in wanted.items() if value is not None}
    given["sequence_tokens"] = given.pop("sequence", None) or default_sequence(architecture)
    given["loss_chunk_tokens"] = given.pop("loss_chunk", 0)
    if given.get("method", "full") != "full":
        given.setdefault("software", ADAPTER_SOFTWARE)
    degrees = {name: given.pop(name) for name in DEGREES if name in given}
    check_degrees(architecture, given.get("gpus"), degrees)
    return MemoryJob(architecture, key.accelerator, key.system, degrees=degrees, **given)


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
