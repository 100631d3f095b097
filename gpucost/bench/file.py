"""A bench file: checked before anything reads it, and read as rows of measurements for calibrations."""

import os
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from gpucost.bench.cases import SHAPES
from gpucost.errors import UsageError
from gpucost.gate import read_json, shown
from gpucost.physics.training.own_runs import ONE_SCRIPT
from gpucost.schemas import typed

SCHEMA_VERSION = 1

if TYPE_CHECKING:
    from pydantic import BaseModel


# --- A bench as rows of measurements: its training and serving steps in the columns that calibrations are fitted to.

_STATE_BYTES = {"amp": 16, "fp8": 16, "bf16": 8}  # per parameter: weights, gradients and both moments


def training_rows(bench: Mapping[str, Any], gpu: str) -> list[dict[str, Any]]:
    """Return the training steps of a bench in the columns of models/measurements/training.csv."""
    # eager fp8 casts in kernels of its own, which no training stack does: such a step says nothing of one
    steps = [row for row in bench["figures"] if row["op"] == "train"]
    return [_training_row(row, gpu, bench) for row in steps if row.get("recipe") != "fp8" or row.get("compiled")]


def _training_row(row: Mapping[str, Any], gpu: str, bench: Mapping[str, Any]) -> dict[str, Any]:
    shape = SHAPES[row["model"]]
    get = row.get  # None where this step does not say
    ranks, recipe, compiled = int(row["ranks"]), get("recipe") or "amp", bool(get("compiled"))
    tensor = int(get("tensor") or 1)
    data = ranks // tensor  # no step of a bench has stages or context parallelism
    micro = int(row["micro_batch"])
    return {
        "id": row.get("case") or row["id"],
        "source_name": ONE_SCRIPT,
        "as_of": str(bench["started"])[:10],
        "model": row["model"],
        "params_b": row["parameters"] / 1e9 if get("parameters") else None,
        "gpu": gpu,
        "n_layers": shape.layers,
        "hidden": shape.hidden,
        "n_heads": shape.heads,
        "n_kv_heads": shape.kv_heads,
        "ffn_hidden": None if shape.experts else shape.ffn,
        "gated_mlp": "y",
        "vocab": shape.vocab,
        "n_experts": shape.experts or None,
        "moe_topk": shape.experts_per_token or None,
        "moe_ffn_hidden": shape.ffn if shape.experts else None,
        "seq_len": int(row["sequence"]),
        "n_gpus": ranks,
        "precision": "fp8" if recipe == "fp8" else "bf16",
        "framework": f"plain PyTorch {'torch.compile per block' if compiled else 'eager'}",
        "compiled": int(compiled),
        "tp": tensor,
        "pp": 1,
        "cp": 1,
        "ep": 1,
        "dp": data,
        "zero_stage": int(get("sharding") or 0),
        "micro_batch": micro,
        "global_batch": micro * data * int(get("accumulate") or 1),
        "activation_recompute": get("recompute") or "none",
        "flash_attention": "y",
        "task": "pretrain",
        "optimizer": "adamw (fused)",
        "state_bytes_per_param": _STATE_BYTES[recipe],
        "loss_chunk_tokens": 8192,  # what TrainStep of gpu/steps.py runs unless told
        "loss_chunk_recompute": 1,
        "measured_iter_time_s": row["time_s"],
        "measured_tokens_per_s_per_gpu": row["tokens_per_s_per_gpu"],
        "core": 1,
    }


def serving_steps(bench: Mapping[str, Any], gpu: str) -> list[dict[str, Any]]:
    """Return the decode and prefill steps of a bench as the steps that serving's calibration reads."""
    # without models of experts: a router of random weights spreads tokens evenly, as no trained one does
    return [
        {
            "model": row["model"],
            "phase": row["phase"],
            "tp": int(row["ranks"]),
            "batch": int(row["batch"]),
            "context": int(row["context"]),
            "weight_precision": row.get("precision") or "bf16",
            "mode": "graph" if row["phase"] == "decode" else "eager",
            "step_s": row["time_s"],
            "gpu": gpu,
        }
        for row in bench["figures"]
        if row["op"] == "serve" and not SHAPES[row["model"]].experts
    ]


# --- A bench file as it must be before anything reads it: figures by operation, each with the numbers that it needs.

# Of a figure: numbers at all, whole ones, those that an operation cannot go without, and those that are never 0.
_NUMBERS = (
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
_COUNTS = ("ranks", "micro_batch", "sequence", "batch", "context", "tensor", "sharding", "accumulate", "gpu_index")
_NEEDED = {
    "matmul": ("m", "k", "n"),
    "train": ("model", "ranks", "micro_batch", "sequence", "time_s", "tokens_per_s_per_gpu"),
    "serve": ("model", "phase", "ranks", "batch", "context", "time_s"),
}
_RECOMPUTE = ("none", "selective", "full")
_NEAR = 0.01  # by which figures that follow from each other may differ: what a file rounds
# what others are divided by
_POSITIVE = ("time_s", "ranks", "micro_batch", "sequence", "batch", "gb_per_s", "tokens_per_s_per_gpu")


@cache
def _bench_model() -> "type[BaseModel]":
    """Return the model of a whole bench file."""
    from pydantic import model_validator

    numbers: dict[str, Any] = {
        name: typed.number(above=name in _POSITIVE, whole_number=name in _COUNTS) for name in _NUMBERS
    }
    numbers["spread_fraction"] = typed.number(high=1e6)
    machine = typed.record(
        "Machine",
        unknown="allow",
        device=(typed.text(least=1), ...),
        gpus=(typed.number(0, 1e6), ...),
        power_limit_w=typed.number(high=1e6),
        memory_gib=typed.number(high=1e6),
    )
    failed = typed.record("Failed", unknown="allow", id=(typed.text(), ...), reason=(typed.text(100_000), ...))
    probe = typed.record(
        "Probe",
        unknown="allow",
        validators={"timed": model_validator(mode="after")(_timed)},
        id=(typed.text(), ...),
        failed=typed.text(100_000),
        **numbers | {"gpu_index": (typed.number(whole_number=True), ...)},
    )
    figure = typed.record(
        "Figure",
        unknown="allow",
        validators={"complete": model_validator(mode="after")(_complete)},
        id=(typed.text(), ...),
        op=(typed.text(least=1), ...),
        slowed_by=(typed.list_of(typed.text()), []),
        rounds_s=(typed.list_of(typed.number(above=True)), []),
        bound=typed.text(),
        recipe=typed.text(),
        **dict.fromkeys(("case", "model", "phase", "precision", "recompute"), typed.text()),
        **numbers,
    )
    model: type[BaseModel] = typed.record(
        "Bench",
        unknown="allow",
        machine=(machine, ...),
        figures=(typed.list_of(figure), ...),
        started=typed.text(least=10),
        spent_s=typed.number(),
        validators={"dated": model_validator(mode="after")(_dated)},
        failed=(typed.list_of(failed), []),
        notes=(typed.list_of(typed.text(100_000)), []),
        each_gpu=(typed.list_of(probe), []),
    )
    return model


# Validators of the model: a ValueError's text ends in the refusal, after the place in the file.
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


def _complete(row: Any) -> Any:
    # a figure with rounds also needs their median, which is held against them below
    needed = (*_NEEDED.get(row.op, ()), *(("time_s",) if row.rounds_s else ()))
    missing = [name for name in needed if getattr(row, name, None) is None]
    if missing:
        raise ValueError(f"a figure of {row.op} needs {', '.join(missing)}")
    if row.op in ("train", "serve") and row.model not in SHAPES:
        raise ValueError(f"model is one of {', '.join(SHAPES)}")
    if row.op == "train" and (row.recipe or "amp") not in _STATE_BYTES:
        raise ValueError(f"recipe is one of {', '.join(_STATE_BYTES)}")
    if row.op == "train" and row.ranks % (row.tensor or 1):
        raise ValueError("ranks are a multiple of tensor")
    if row.op == "train" and (row.recompute or "none") not in _RECOMPUTE:
        raise ValueError(f"recompute is one of {', '.join(_RECOMPUTE)}")
    # numbers that follow from each other must agree: an edited file would otherwise fit a speed that nobody measured
    rounds = row.rounds_s
    if rounds and not min(rounds) * (1 - _NEAR) <= row.time_s <= max(rounds) * (1 + _NEAR):
        raise ValueError(f"time_s is {row.time_s:g}, and its rounds_s lie between {min(rounds):g} and {max(rounds):g}")
    if row.op == "train":
        tokens = row.micro_batch * (row.accumulate or 1) * row.sequence / (row.tensor or 1)
        if abs(row.tokens_per_s_per_gpu * row.time_s / tokens - 1) > _NEAR:
            stated = f"tokens_per_s_per_gpu is {row.tokens_per_s_per_gpu:g}"
            raise ValueError(f"{stated}, and {tokens / row.time_s:g} follows from time_s, micro_batch and sequence")
    return row


def read_bench(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a bench file and check that it is one."""
    value = read_json(path, "limit_answer_file_bytes")
    if (
        not isinstance(value, dict)
        or value.get("kind") != "bench"
        or not isinstance(value.get("figures"), list)
        or not isinstance(value.get("machine"), dict)
    ):
        raise UsageError(f"{path} is not a bench: `gpucost bench FILE` writes one")
    if value.get("schema_version") != SCHEMA_VERSION:
        raise UsageError(
            f"{path} has version {shown(value.get('schema_version'))}, this gpucost reads {SCHEMA_VERSION}. Update it"
            " or run bench again."
        )
    # checked by hand first: to a file that is no bench at all, a list of missing fields would say nothing
    typed.validated(_bench_model(), value, os.fspath(path))
    # an empty cell is as good as none; a figure of one round may leave the round out
    rows = ({name: cell for name, cell in row.items() if cell is not None} for row in value["figures"])
    figures = [{**row, "rounds_s": row.get("rounds_s") or ([row["time_s"]] if "time_s" in row else [])} for row in rows]
    return {"failed": [], **value, "figures": figures}
