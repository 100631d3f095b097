"""Which cases a profile measures, in order of worth, and the decoders that they run."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

# --- The decoders that a bench runs, by their dimensions.


class ModelShape(Struct, frozen=True):
    """Dimensions of a decoder."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    head_dim: int = 0  # 0 is hidden ÷ heads
    experts: int = 0  # 0 is a dense feed-forward; `ffn` is then the width of one expert
    experts_per_token: int = 0

    @property
    def width(self) -> int:
        """Width of one head."""
        return self.head_dim or self.hidden // self.heads


# Published dimensions where the name is a model's; `tiny` runs on a processor, and the others without a vendor's name
# (`0.5b`, `34b`, `moe-…`) fill sizes between, so that experts and narrow heads are measured too.
SHAPES = {
    "tiny": ModelShape(2, 64, 4, 2, 128, 256),
    "gpt2-124m": ModelShape(12, 768, 12, 12, 2048, 50304),
    "0.5b": ModelShape(24, 1024, 16, 8, 4096, 32000),
    "llama3.2-1b": ModelShape(16, 2048, 32, 8, 8192, 128256),
    "tinyllama-1.1b": ModelShape(22, 2048, 32, 4, 5632, 32000),
    "qwen2.5-1.5b": ModelShape(28, 1536, 12, 2, 8960, 151936),
    "llama3.2-3b": ModelShape(28, 3072, 24, 8, 8192, 128256),
    "llama2-7b": ModelShape(32, 4096, 32, 32, 11008, 32000),
    "llama3-8b": ModelShape(32, 4096, 32, 8, 14336, 128256),
    "llama2-13b": ModelShape(40, 5120, 40, 40, 13824, 32000),
    "llama3-70b": ModelShape(80, 8192, 64, 8, 28672, 128256),
    "34b": ModelShape(48, 8192, 64, 8, 22016, 32000),
    "moe-1b-7b": ModelShape(16, 2048, 16, 16, 1024, 50304, experts=64, experts_per_token=8),
    "moe-3b-a0.6b": ModelShape(12, 1536, 12, 4, 768, 50304, experts=64, experts_per_token=8),
    "moe-8x1b": ModelShape(16, 2048, 32, 8, 4096, 32000, experts=8, experts_per_token=2),
    "moe-4l-128x8": ModelShape(4, 2048, 32, 4, 768, 151936, head_dim=128, experts=128, experts_per_token=8),
    "tiny-moe": ModelShape(2, 64, 4, 2, 64, 256, experts=4, experts_per_token=2),
}


# --- Which cases a profile measures, in order of worth: a bench that is cut short has measured what matters most.

KIB, MIB, GIB_BYTES = 2**10, 2**20, 2**30

GROUPS = ("memory", "matmul", "skinny", "attention", "elementwise", "host", "links", "train", "serve", "loader")
PROFILES = ("short", "full", "check", "tiny")


class BenchCase(Struct, frozen=True):
    """One thing to measure: an operation with its arguments, on one GPU or on several."""

    id: str
    group: str
    op: str
    arguments: dict[str, Any] = field(default_factory=dict)
    ranks: int = 1  # GPUs that run it together
    limit_s: float = 60.0  # after so long without an answer the measuring process is ended

    def message(self) -> dict[str, Any]:
        """Return what the measuring process needs."""
        fields_by_name = asdict(self)
        return {name: fields_by_name[name] for name in ("id", "op", "arguments")}


def _case(group: str, op: str, ranks: int = 1, limit_s: float = 60.0, **arguments: Any) -> BenchCase:
    # a flag that is off is left out of the name, by which a resumed bench knows what it has measured
    values = [str(value) for value in arguments.values() if value is not False]
    name = " ".join([op, *values, *([f"on {ranks}"] if ranks > 1 else [])])
    return BenchCase(name, group, op, arguments, ranks, limit_s)


def cases_of(profile: str, gpus: int, folder: str | None = None) -> list[BenchCase]:
    """Return the cases of a profile on a machine with some GPUs.

    >>> [case.id for case in cases_of("tiny", 1)][:2]
    ['copy 65536', 'matmul bf16 64 64 64']
    """
    if profile == "tiny":
        return list(_tiny(gpus, folder))
    if profile == "check":
        return list(_checks(gpus))
    full = profile == "full"
    cases = [*_kernels(full), *_steps(full)]
    # all GPUs first; a pair too, since some machines join two of their GPUs by faster links than the others
    for ranks in (gpus, 2) if full else (gpus,):
        if 1 < ranks <= gpus:
            cases += [case for case in _across(full, ranks) if case not in cases]
    loaders = [_case("loader", "loader", workers=count, size_bytes=GIB_BYTES, folder=folder) for count in (4, 8)]
    return [*cases, *loaders[: 2 if full else 1]]


def _kernels(full: bool) -> Iterator[BenchCase]:
    """Yield copies, products, attention and the way to the host: the peaks that a datasheet states."""
    # from far beyond any last-level cache down to what lies in one
    sizes = [4 * GIB_BYTES, GIB_BYTES, 64 * MIB, 16 * MIB, 4 * MIB, MIB]
    yield from (_case("memory", "copy", size_bytes=size) for size in (sizes if full else sizes[1:5]))
    squares: tuple[int, ...] = (16384, 8192, 4096, 2048, 1024) if full else (8192, 2048)
    for precision in ("bf16", "fp8", "fp16", "tf32", "fp32"):
        sides = squares
        if precision not in ("bf16", "fp8"):  # models seldom run in the others: one size shows their peak
            sides = squares[1:2] if full else squares[:1]
        for m in sides:
            yield _case("matmul", "matmul", precision=precision, m=m, k=m, n=m)
    # the feed-forwards of Llama 3 8B (up, down) and 70B (up)
    widths = [(4096, 14336), (14336, 4096), (8192, 28672)]
    for k, n in widths if full else widths[:1]:
        yield _case("matmul", "matmul", precision="bf16", m=8192, k=k, n=n)
        for precision in ("bf16", "fp8"):
            for m in (1, 8, 16, 32, 64, 128, 256) if full else (1, 16, 64, 256):
                if precision == "bf16" or m >= 16:  # fp8 products take rows by sixteen
                    yield _case("skinny", "matmul", precision=precision, m=m, k=k, n=n)
    for sequence in (2048, 8192, 32768) if full else (4096,):
        for direction in ("forward", "backward"):  # heads of Llama 3 8B, 16,384 tokens where a sequence is shorter
            shape = {"sequence": sequence, "heads": 32, "kv_heads": 8, "head_dim": 128}
            yield _case("attention", "attention", direction=direction, batch=max(1, 16384 // sequence), **shape)
    yield _case("elementwise", "launch")
    yield _case("elementwise", "norm", tokens=16384, hidden=4096)
    yield _case("elementwise", "adamw", parameters=2**29)
    for direction in ("to_device", "to_host"):
        for pinned in (True, False) if full else (True,):
            yield _case("host", "host", direction=direction, size_bytes=256 * MIB, pinned=pinned)


def _steps(full: bool) -> Iterator[BenchCase]:
    """Yield training and serving steps on one GPU: what calibrations are fitted to."""
    steps: list[dict[str, Any]] = [
        {"model": "llama3.2-1b", "sequence": 4096, "micro_batch": 2},
        {"model": "llama3.2-1b", "sequence": 4096, "micro_batch": 2, "compiled": True},
        {"model": "llama3.2-3b", "sequence": 4096, "micro_batch": 2, "recompute": "full"},
        {"model": "llama3-8b", "sequence": 4096, "micro_batch": 1, "recipe": "bf16", "recompute": "full"},
        {"model": "moe-8x1b", "sequence": 4096, "micro_batch": 2, "recompute": "full"},
        {"model": "gpt2-124m", "sequence": 1024, "micro_batch": 32},
        {"model": "0.5b", "sequence": 2048, "micro_batch": 8, "compiled": True},
    ]
    if full:
        steps += [
            {"model": "gpt2-124m", "sequence": 1024, "micro_batch": 32, "compiled": True},
            {"model": "llama3.2-1b", "sequence": 2048, "micro_batch": 4, "recipe": "bf16", "compiled": True},
            {"model": "llama3.2-3b", "sequence": 4096, "micro_batch": 2, "recompute": "full", "compiled": True},
            {"model": "llama3.2-1b", "sequence": 32768, "micro_batch": 1, "recompute": "full"},
            {"model": "moe-3b-a0.6b", "sequence": 4096, "micro_batch": 4, "recompute": "full"},
            {"model": "llama3.2-3b", "sequence": 32768, "micro_batch": 1, "recompute": "full", "compiled": True},
            {"model": "moe-1b-7b", "sequence": 4096, "micro_batch": 2, "recompute": "full", "recipe": "bf16"},
            {"model": "llama3.2-3b", "sequence": 4096, "micro_batch": 2, "recompute": "full", "recipe": "fp8"},
            {
                "model": "llama3.2-3b",
                "sequence": 4096,
                "micro_batch": 2,
                "recompute": "full",
                "recipe": "fp8",
                "compiled": True,
            },
        ]
    yield from (_case("train", "train", limit_s=150.0, **step) for step in steps)
    decodes = [(1, 1024), (32, 1024), (128, 1024), (8, 8192)] if full else [(1, 1024), (32, 1024)]
    if not full:  # one prompt so short that the host bounds it
        yield _case("serve", "serve", model="llama3.2-1b", phase="prefill", batch=1, context=512)
    for model in ("llama3-8b", "llama3.2-1b", "moe-1b-7b") if full else ("llama3-8b",):
        for batch, context in decodes:
            yield _case("serve", "serve", model=model, phase="decode", batch=batch, context=context)
        for context in (512, 2048, 8192) if full else (2048,):
            yield _case("serve", "serve", model=model, phase="prefill", batch=1, context=context)
    if full:
        for batch in (16, 64):
            yield _case("serve", "serve", model="llama3-8b", phase="decode", batch=batch, context=1024, precision="fp8")


def _checks(gpus: int) -> Iterator[BenchCase]:
    """Yield shapes that no other profile measures: what a calibration on a bench predicts is held against them."""
    steps: list[dict[str, Any]] = [
        {"model": "tinyllama-1.1b", "sequence": 2048, "micro_batch": 4, "compiled": True},
        {"model": "qwen2.5-1.5b", "sequence": 4096, "micro_batch": 2},
        {"model": "0.5b", "sequence": 4096, "micro_batch": 4},
        {"model": "llama3.2-3b", "sequence": 2048, "micro_batch": 4, "recompute": "full"},
        {"model": "llama2-7b", "sequence": 4096, "micro_batch": 1, "recipe": "bf16", "recompute": "full"},
        {"model": "llama3.2-1b", "sequence": 8192, "micro_batch": 1, "recompute": "selective"},
        {"model": "gpt2-124m", "sequence": 1024, "micro_batch": 16},
        {"model": "llama3.2-3b", "sequence": 8192, "micro_batch": 1, "recompute": "full", "compiled": True},
        {"model": "moe-3b-a0.6b", "sequence": 2048, "micro_batch": 8, "recompute": "full"},
        {"model": "moe-1b-7b", "sequence": 4096, "micro_batch": 4, "recompute": "full", "recipe": "bf16"},
    ]
    yield from (_case("train", "train", limit_s=150.0, **step) for step in steps)
    decodes = (
        ("qwen2.5-1.5b", 16, 2048),
        ("llama2-7b", 8, 1024),
        ("llama3.2-3b", 64, 1024),
        ("tinyllama-1.1b", 1, 512),
        ("llama3.2-3b", 4, 16384),
        ("llama2-7b", 1, 4096),
    )
    prompts = (
        ("qwen2.5-1.5b", 1024),
        ("llama3.2-3b", 512),
        ("llama3.2-3b", 4096),
        ("llama2-7b", 4096),
        ("tinyllama-1.1b", 512),
        ("tinyllama-1.1b", 4096),
        ("llama2-7b", 256),
    )
    for model, batch, context in decodes:
        yield _case("serve", "serve", model=model, phase="decode", batch=batch, context=context)
    for model, context in prompts:
        yield _case("serve", "serve", model=model, phase="prefill", batch=1, context=context)
    if gpus > 1:
        yield _case("train", "train", gpus, 200.0, model="qwen2.5-1.5b", sequence=4096, micro_batch=2, sharding=3)


def _across(full: bool, ranks: int) -> Iterator[BenchCase]:
    """Yield collectives, and steps of one model, over several GPUs."""
    # 64 KiB is bound by latency, 1 GiB by the links: all-reduce at every size, since tensor parallelism waits for it
    sizes = [GIB_BYTES, 256 * MIB, 16 * MIB, MIB, 64 * KIB] if full else [GIB_BYTES, 16 * MIB, 64 * KIB]
    for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"):
        for size in sizes if operation == "all_reduce" or full else sizes[:1]:
            yield _case("links", "collective", ranks, operation=operation, size_bytes=size)
    steps: list[dict[str, Any]] = [{"model": "llama3.2-3b", "sequence": 4096, "micro_batch": 2, "sharding": 3}]
    if full:
        steps += [
            {"model": "llama3.2-1b", "sequence": 2048, "micro_batch": 4, "compiled": True},
            {"model": "llama3-8b", "sequence": 4096, "micro_batch": 1, "sharding": 3, "recompute": "full"},
            {"model": "llama3.2-3b", "sequence": 4096, "micro_batch": 4, "sharding": 3, "compiled": True},
            {"model": "llama3.2-3b", "sequence": 32768, "micro_batch": 1, "sharding": 3, "recompute": "full"},
            {"model": "moe-3b-a0.6b", "sequence": 4096, "micro_batch": 4, "sharding": 3, "recompute": "full"},
            {"model": "moe-8x1b", "sequence": 4096, "micro_batch": 2, "sharding": 3, "recompute": "full"},
        ]
    yield from (_case("train", "train", ranks, 200.0, **step) for step in steps)
    for batch in (1, 32) if full else (32,):
        yield _case("serve", "serve", ranks, model="llama3-8b", phase="decode", batch=batch, context=1024)


def _tiny(gpus: int, folder: str | None) -> Iterator[BenchCase]:
    """Yield one case of each kind, small enough for a processor."""
    yield _case("memory", "copy", size_bytes=64 * KIB)
    yield _case("matmul", "matmul", precision="bf16", m=64, k=64, n=64)
    shape = {"batch": 1, "sequence": 64, "heads": 4, "kv_heads": 2, "head_dim": 16}
    for direction in ("forward", "backward"):
        yield _case("attention", "attention", direction=direction, **shape)
    yield _case("elementwise", "launch")
    yield _case("elementwise", "norm", tokens=64, hidden=64)
    yield _case("elementwise", "adamw", parameters=4096)
    yield _case("host", "host", direction="to_device", size_bytes=MIB, pinned=False)
    for model in ("tiny", "tiny-moe"):
        yield _case("train", "train", model=model, sequence=32, micro_batch=1)
        yield _case("serve", "serve", model=model, phase="decode", batch=2, context=32)
        yield _case("serve", "serve", model=model, phase="prefill", batch=1, context=32)
    if gpus > 1:
        yield _case("links", "collective", gpus, operation="all_reduce", size_bytes=64 * KIB)
        yield _case("train", "train", gpus, model="tiny", sequence=32, micro_batch=1, sharding=3)
    yield _case("loader", "loader", workers=0, size_bytes=8 * MIB, folder=folder)
