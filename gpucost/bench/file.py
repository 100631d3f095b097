"""A bench file as it must be before anything reads it: figures by operation, each with the numbers that it needs."""

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from gpucost.bench.rows import STATE_BYTES
from gpucost.bench.shapes import SHAPES
from gpucost.gate import shown
from gpucost.schemas.typed import number, record, several, text

if TYPE_CHECKING:
    from pydantic import BaseModel

NUMBERS = (
    "m",
    "k",
    "n",
    "size_bytes",
    "time_s",
    "tflops",
    "gb_per_s",
    "bus_gb_per_s",
    "ranks",
    "batch",
    "context",
    "sequence",
    "micro_batch",
    "parameters",
    "tokens_per_s_per_gpu",
    "tensor",
    "sharding",
    "accumulate",
    "gpu_index",
    "device_s",
    "slowest_s",
    "took_s",
    "burst_tflops",
    "spread_fraction",
)
COUNTS = ("ranks", "micro_batch", "sequence", "batch", "context", "tensor", "sharding", "accumulate", "gpu_index")
NEEDED = {
    "matmul": ("m", "k", "n"),
    "train": ("model", "ranks", "micro_batch", "sequence", "time_s", "tokens_per_s_per_gpu"),
    "serve": ("model", "phase", "ranks", "batch", "context", "time_s"),
}
RECOMPUTE = ("none", "selective", "full")
NEAR = 0.01  # by which figures that follow from each other may differ: what a file rounds
POSITIVE = ("time_s", "ranks", "micro_batch", "sequence", "batch", "gb_per_s", "tokens_per_s_per_gpu")


@cache
def bench_model() -> "type[BaseModel]":
    """Return the model of a whole bench file."""
    from pydantic import model_validator

    machine = record(
        "Machine",
        strange="allow",
        device=(text(least=1), ...),
        gpus=(number(0, 1e6), ...),
        power_limit_w=number(high=1e6),
        memory_gib=number(high=1e6),
    )
    failed = record("Failed", strange="allow", id=(text(), ...), reason=(text(100_000), ...))
    probe = record(
        "Probe",
        strange="allow",
        validators={"timed": model_validator(mode="after")(_timed)},
        id=(text(), ...),
        failed=text(100_000),
        **_numbers() | {"gpu_index": (number(whole=True), ...)},
    )
    whole: type[BaseModel] = record(
        "Bench",
        strange="allow",
        machine=(machine, ...),
        figures=(several(_figure()), ...),
        started=text(least=10),
        spent_s=number(),
        validators={"dated": model_validator(mode="after")(_dated)},
        failed=(several(failed), []),
        notes=(several(text(100_000)), []),
        each_gpu=(several(probe), []),
    )
    return whole


def _numbers() -> dict[str, Any]:
    found = {name: number(above=name in POSITIVE, whole=name in COUNTS) for name in NUMBERS}
    return found | {"spread_fraction": number(high=1e6)}


def _dated(bench: Any) -> Any:
    if bench.started is None and any(row.op == "train" for row in bench.figures):
        raise ValueError("the time at which training steps started, as started")
    if bench.started is not None:
        try:
            date.fromisoformat(bench.started[:10])
        except ValueError:
            raise ValueError(f"started begins with a day as YYYY-MM-DD, not {shown(bench.started)}") from None
    return bench


def _timed(row: Any) -> Any:
    if row.time_s is None and not row.failed:
        raise ValueError("a time_s, or why it failed")
    return row


def _figure() -> Any:
    from pydantic import model_validator

    words = dict.fromkeys(("case", "model", "phase", "precision", "recompute"), text())
    return record(
        "Figure",
        strange="allow",
        validators={"complete": model_validator(mode="after")(_complete)},
        id=(text(), ...),
        op=(text(least=1), ...),
        slowed_by=(several(text()), []),
        rounds_s=(several(number(above=True)), []),
        bound=text(),
        recipe=text(),
        **words,
        **_numbers(),
    )


def _complete(row: Any) -> Any:
    needed = (*NEEDED.get(row.op, ()), *(("time_s",) if row.rounds_s else ()))
    missing = [name for name in needed if getattr(row, name, None) is None]
    if missing:
        raise ValueError(f"a figure of {row.op} needs {', '.join(missing)}")
    if row.op in ("train", "serve") and row.model not in SHAPES:
        raise ValueError(f"model is one of {', '.join(SHAPES)}")
    if row.op == "train" and (row.recipe or "amp") not in STATE_BYTES:
        raise ValueError(f"recipe is one of {', '.join(STATE_BYTES)}")
    if row.op == "train" and row.ranks % (row.tensor or 1):
        raise ValueError("ranks are a multiple of tensor")
    if row.op == "train" and (row.recompute or "none") not in RECOMPUTE:
        raise ValueError(f"recompute is one of {', '.join(RECOMPUTE)}")
    if fault := _contradiction(row):
        raise ValueError(fault)
    return row


def _contradiction(row: Any) -> str | None:
    """Return which numbers of a figure cannot stand beside each other; None where they can."""
    rounds = row.rounds_s
    if rounds and not min(rounds) * (1 - NEAR) <= row.time_s <= max(rounds) * (1 + NEAR):
        return f"time_s is {row.time_s:g}, and its rounds_s lie between {min(rounds):g} and {max(rounds):g}"
    if row.op == "train":
        tokens = row.micro_batch * (row.accumulate or 1) * row.sequence / (row.tensor or 1)
        if abs(row.tokens_per_s_per_gpu * row.time_s / tokens - 1) > NEAR:
            said = f"tokens_per_s_per_gpu is {row.tokens_per_s_per_gpu:g}"
            return f"{said}, and {tokens / row.time_s:g} follows from time_s, micro_batch and sequence"
    return None
