"""Other models of serving on our load tests: `python -m benchmarks.load_peers -o benchmarks/load_peers.csv PEER…`.

PEER is a folder: the site-packages that hold AIConfigurator (NVIDIA, PyPI, 0.12.0 with its own measured kernels), or a
checkout of BLIS (github.com/inference-sim/inference-sim at f90a1e3 of 2026-08-22) with its program built there as
`blis`. Each is asked what it can say. AIConfigurator: models of its own list, or made of plain layers, on its systems;
it knows no arrivals, so that a rate is the batch that Little's law gives, and answers with means. BLIS: vLLM, plain
layers, clients that wait for their answers; its coefficients are those that it brings, accelerators that it does not
list are added by their datasheets, as its guide says. `docs/accuracy.md` reads the table.
"""

import argparse
import csv
import json
import logging
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gpucost.calibration.load import STATISTICS, LoadTest, gather, loads_of
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.physics.serving.replica import ReplicaEngine, engine_of
from gpucost.types import Accelerator, Architecture

Figures = dict[str, float]  # by metric, as a row states them
SYSTEMS = {
    "h100-sxm5-80gb": "h100_sxm",
    "h200-sxm-141gb": "h200_sxm",
    "b200-sxm": "b200_sxm",
    "b300-sxm": "b300_sxm",
    "gb300-nvl72-gpu": "gb300",
    "l40s": "l40s",
    "rtx-pro-6000-bw-server": "rtx_pro_6000_server",
    "rtx-pro-6000-bw-ws": "rtx_pro_6000_server",
}
LISTED = {"kimi-k2.5": "nvidia/Kimi-K2.5-NVFP4", "gpt-oss-120b": "openai/gpt-oss-120b"}
ENGINES = {"vllm": "vllm", "sglang": "sglang", "tuned": "trtllm", "trtllm": "trtllm"}
_PRODUCTS = {"nvfp4": "nvfp4", "fp8": "fp8", "int4": "int4_wo", "bf16": "bfloat16"}
_BITS = {"int4": 4, "fp8": 8, "nvfp4": 4}
_MOST_SEQUENCES = 2048  # in flight: the end of the search


def plain(model: Architecture) -> bool:
    """Tell whether all layers of a model are alike: full attention, a gated feed-forward or routed experts alone."""
    # latent attention, windows and shared experts have costs that no published configuration of plain layers says
    attends = model.attention in ("gqa", "mha", "mqa") and not (model.window_layers or model.linear_layers)
    alike = not (model.shared_experts or model.first_dense_layers) and model.moe_layer_step == 1
    return attends and alike and model.gated and not model.blocks


def config(model: Architecture, format_: str) -> dict[str, Any]:
    """Return a model of plain layers as its makers would publish it."""
    shared = {
        "architectures": ["Qwen3MoeForCausalLM" if model.experts else "LlamaForCausalLM"],
        "model_type": "qwen3_moe" if model.experts else "llama",
        "hidden_size": model.hidden,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "intermediate_size": model.ffn_hidden or model.expert_ffn_hidden,
        "vocab_size": model.vocab,
        "max_position_embeddings": model.max_sequence_tokens or 131_072,
        "tie_word_embeddings": model.tied_embeddings,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    }
    if model.experts:
        shared |= {
            "num_experts": model.experts,
            "num_experts_per_tok": model.experts_per_token,
            "moe_intermediate_size": model.expert_ffn_hidden,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        }
    if format_ in _BITS:
        method = "fp8" if _BITS[format_] == 8 else "awq"
        shared["quantization_config"] = {"quant_method": method, "bits": _BITS[format_]}
    return shared


def aiconfigurator(folder: Path) -> Callable[[LoadTest, ReplicaEngine], Figures | None]:
    """Return how AIConfigurator answers a test; None where it has no such model, system or engine."""
    # its own packages beside ours: at the end of the path, so that ours win
    sys.path.append(str(folder))
    logging.disable(logging.WARNING)
    from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]

    def answered(test: LoadTest, _: ReplicaEngine) -> Figures | None:
        row, d = test.row, test.row.deployment
        model, listed = d.architecture, LISTED.get(d.architecture.name)
        if d.accelerator.id not in SYSTEMS or d.engine not in ENGINES or not (listed or plain(model)):
            return None
        with TemporaryDirectory() as scratch:
            Path(scratch, "config.json").write_text(json.dumps(config(model, "")), "utf-8")
            settings: dict[str, Any] = {
                "backend_name": ENGINES[d.engine],
                "isl": max(round(row.prompt_tokens), 1),
                "osl": max(round(row.output_tokens), 2),
                "tp_size": d.tensor,
                "pp_size": d.pipeline,
                "database_mode": "HYBRID",
            }
            if not listed:
                settings["gemm_quant_mode"] = _PRODUCTS[d.format]
            if model.experts:
                settings |= {"moe_tp_size": d.tensor // d.expert, "moe_ep_size": d.expert}
                settings |= {} if listed else {"moe_quant_mode": _PRODUCTS[d.format]}

            def at(batch: int) -> Figures:
                answer = cli_estimate(listed or scratch, SYSTEMS[d.accelerator.id], batch_size=batch, **settings)
                e2e_s = (answer.ttft + answer.tpot * (settings["osl"] - 1)) / 1000
                return {"ttft_mean_ms": answer.ttft, "tpot_mean_ms": answer.tpot, "e2e_mean_s": e2e_s}

            if test.rate is None:  # clients that wait for their answers: each has one in flight
                return at(min(test.clients or 1, test.requests))

            def carries(batch: int) -> bool:
                try:
                    return bool(batch / at(batch)["e2e_mean_s"] >= test.rate)
                except RuntimeError:  # so many do not fit: the search goes on among fewer
                    return True

            low, high = 1, _MOST_SEQUENCES  # the fewest in flight that carry the rate
            while low < high:
                middle = int(math.sqrt(low * high))  # of orders of magnitude: small batches are the usual ones
                low, high = (low, middle) if carries(middle) else (middle + 1, high)
            return at(low)

    return answered


def hardware(chip: Accelerator) -> dict[str, float]:
    """Return an accelerator in BLIS' words, by its datasheet; the shares of H100 are those of its other mode."""
    half, eight = chip.bf16_tflops or 0.0, chip.fp8_tflops or 0.0
    peaks = {"TFlopsPeak": half, "TFlopsFP8": eight, "BwPeakTBs": chip.hbm_gb_per_s / 1000}
    return {**peaks, "mfuPrefill": 0.45, "mfuDecode": 0.30, "MemoryGiB": chip.memory_gib}


def blis(folder: Path) -> Callable[[LoadTest, ReplicaEngine], Figures | None]:
    """Return how BLIS answers a test; None where it is not vLLM, not of plain layers, in stages, or sent at a rate."""

    def answered(test: LoadTest, engine: ReplicaEngine) -> Figures | None:
        row, d = test.row, test.row.deployment
        if d.engine != "vllm" or d.format not in ("bf16", *_BITS) or not plain(d.architecture):
            return None
        if test.clients is None or d.pipeline > 1:
            return None
        with TemporaryDirectory() as scratch:
            Path(scratch, "config.json").write_text(json.dumps(config(d.architecture, d.format)), "utf-8")
            Path(scratch, "hardware.json").write_text(json.dumps({"chip": hardware(d.accelerator)}), "utf-8")
            options = {
                "model": d.architecture.name,
                "model-config-folder": scratch,
                "hardware-config": f"{scratch}/hardware.json",
                "hardware": "chip",
                "tp": d.tensor,
                "concurrency": min(test.clients, test.requests),
                "num-requests": test.requests,
                "prompt-tokens": round(row.prompt_tokens),
                "output-tokens": round(row.output_tokens),
                "prompt-tokens-stdev": 0,
                "output-tokens-stdev": 0,
                "prompt-tokens-max": 1_000_000,
                "output-tokens-max": 1_000_000,
                "max-num-batched-tokens": round(engine.budget_tokens),
                "max-num-seqs": engine.seats,
                "timeout": -1,
                "metrics-path": f"{scratch}/answer.json",
            }
            arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            subprocess.run(
                [folder / "blis", "run", *arguments], cwd=folder, check=True, capture_output=True, timeout=300
            )
            requests = json.loads(Path(scratch, "answer.json").read_text("utf-8"))["requests"]
        times = {"ttft_{}_ms": ("ttft_ms", 1.0), "tpot_{}_ms": ("itl_ms", 1.0), "e2e_{}_s": ("e2e_ms", 1000.0)}
        # percentiles over requests, as a load generator prints them
        figures: Figures = {}
        for label, (name, unit) in times.items():
            each = np.array([request[name] for request in requests if request["e2e_ms"]]) / unit
            printed = [each.mean(), *np.quantile(each, [0.5, 0.9, 0.95, 0.99])]
            figures |= {label.format(some): float(value) for some, value in zip(STATISTICS, printed, strict=True)}
        return figures

    return answered


def answers(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield what a peer says of every figure that a test states: the test, the peer, the metric, its value."""
    peer = "blis" if (folder / "blis").is_file() else "aiconfigurator"
    answered = {"blis": blis, "aiconfigurator": aiconfigurator}[peer](folder)
    facts = open_catalog()
    rows: list[Mapping[str, Any]] = [dict(row) for row in facts.rows("load_measurements")]
    tests, measured = gather(rows, facts)
    loads = loads_of([test.row for test in tests], serving_calibration(facts).values)
    stated = {(figure.row, figure.metric) for figure in measured.figures}
    for index, test in enumerate(tests):
        row = test.row
        longest = 13 * (row.prompt_tokens + row.output_tokens)
        engine = engine_of(loads.case.take([index]), row.prompt_tokens, row.output_tokens, longest)
        try:
            figures = answered(test, engine)
        except Exception as error:  # a peer fails in ways of its own: such a row is one that it cannot say
            print(f"{row.id}: {' '.join(str(error).split())[:200]}", file=sys.stderr)
            continue
        for metric, value in (figures or {}).items():
            if (index, metric) in stated:  # what no test measured compares with nothing
                yield row.id, peer, metric, f"{value:.4g}"


def main() -> None:
    """Ask each peer; write what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    lines = [line for folder in options.peers for line in answers(folder.absolute())]
    with options.output.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("id", "peer", "metric", "predicted"), *sorted(lines)])


if __name__ == "__main__":
    main()
