"""A bench as rows of measurements: its training and serving steps in the columns that calibrations are fitted to."""

from collections.abc import Mapping
from typing import Any

from gpucost.bench.shapes import SHAPES
from gpucost.physics.training.own_runs import ONE_SCRIPT

STATE_BYTES = {"amp": 16, "fp8": 16, "bf16": 8}  # per parameter: weights, gradients and both moments


def training_rows(bench: Mapping[str, Any], gpu: str) -> list[dict[str, Any]]:
    """Return the training steps of a bench in the columns of models/measurements/training.csv."""
    steps = [row for row in bench["figures"] if row["op"] == "train"]
    return [_training_row(row, gpu, bench) for row in steps if row.get("recipe") != "fp8" or row.get("compiled")]


def _training_row(row: Mapping[str, Any], gpu: str, bench: Mapping[str, Any]) -> dict[str, Any]:
    shape = SHAPES[row["model"]]
    get = row.get
    ranks, recipe, compiled = int(row["ranks"]), get("recipe") or "amp", bool(get("compiled"))
    tensor = int(get("tensor") or 1)
    data = ranks // tensor
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
        "state_bytes_per_param": STATE_BYTES[recipe],
        "loss_chunk_tokens": 8192,
        "loss_chunk_recompute": 1,
        "measured_iter_time_s": row["time_s"],
        "measured_tokens_per_s_per_gpu": row["tokens_per_s_per_gpu"],
        "core": 1,
    }


def serving_steps(bench: Mapping[str, Any], gpu: str) -> list[dict[str, Any]]:
    """Return the decode and prefill steps of a bench as the steps that serving's calibration reads."""
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
