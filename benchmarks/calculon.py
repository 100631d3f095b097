"""Calculon on our rows of training: `python -m benchmarks.calculon CHECKOUT -o benchmarks/calculon.csv`.

Isaev et al., "Calculon: a methodology and tool for high-level co-design of systems and large language models", SC 2023;
github.com/calculon-ai/calculon at commit caa4b11 of 2024-02-22, its own systems and efficiencies. It knows dense models
of multi-head attention on A100 and H100 of 80 GB in 16 bits, spread by tensor, pipeline and data with the optimizer
sharded. A gated feed-forward has three matrices where it has two: they are given as two of as many parameters. Fewer
heads of keys and values, the vocabulary and the causal mask it does not know. `docs/accuracy.md` reads the table.
"""

import argparse
import csv
import json
import logging
import sys
from pathlib import Path
from typing import Any

from gpucost.calibration.fits import training_shipped
from gpucost.calibration.training_rows import TrainingRow
from gpucost.catalog import open_catalog

SYSTEMS = {"a100-sxm4-80gb": "a100_80g", "h100-sxm5-80gb": "h100_80g_nvl8"}
RECOMPUTES = {"none": "none", "selective": "attn_only", "full": "full"}
NODE_GPUS = 8


def expresses(row: TrainingRow) -> bool:
    """Tell whether Calculon can say what a row states."""
    layout, model = row.layout, row.architecture
    # no experts, no context parallelism, no sharded weights: it has no words for them
    dense = model.experts == 0 and model.ffn_hidden > 0 and layout.context == 1 and layout.sharding < 3
    plain = row.method == "full" and not row.tuning and row.stated_layout and layout.precision in ("bf16", "fp16")
    # whole nodes, or one tensor group inside a node
    whole = layout.tensor <= NODE_GPUS and (layout.gpus % NODE_GPUS == 0 or layout.gpus == layout.tensor)
    return dense and plain and whole and row.accelerator.id in SYSTEMS


def execution(row: TrainingRow) -> dict[str, Any]:
    """Return how a row is run in Calculon's words: tensor groups inside nodes, stages and copies between them."""
    layout = row.layout
    apart = int(layout.gpus > NODE_GPUS)  # which network: 0 is that inside a node
    return {
        "num_procs": layout.gpus,
        "tensor_par": layout.tensor,
        "pipeline_par": layout.pipeline,
        "data_par": layout.data,
        "tensor_par_net": 0,
        "pipeline_par_net": apart,
        "data_par_net": apart,
        "batch_size": layout.global_batch,
        "microbatch_size": layout.micro_batch,
        "datatype": "float16",
        "fused_activation": True,
        "attention_type": "multihead",
        "activation_recompute": RECOMPUTES[layout.recompute],
        "pipeline_interleaving": layout.virtual_stages if layout.pipeline > 1 else 1,
        "optimizer_sharding": layout.sharding > 0 and layout.data > 1,
        "tensor_par_comm_type": "rs_ag" if layout.tensor > 1 else "ar",
        "tensor_par_overlap": "none",
        "seq_par_ag_redo": False,
        "data_par_overlap": layout.data > 1,
        "weight_offload": False,
        "activations_offload": False,
        "optimizer_offload": False,
        "training": True,
    }


def application(row: TrainingRow) -> dict[str, int]:
    """Return a row's model in Calculon's words."""
    model = row.architecture
    return {
        "hidden": model.hidden,
        # three matrices as two of as many parameters
        "feedforward": model.ffn_hidden * 3 // 2 if model.gated else model.ffn_hidden,
        "seq_size": int(row.sequence_tokens),
        "attn_heads": model.heads,
        "attn_size": model.head_dim,
        "num_blocks": model.layers,
    }


def main() -> None:
    """Run Calculon on every row that it can express; write its tokens per second and accelerator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(options.checkout))
    from calculon.llm import Llm  # type: ignore[import-not-found]
    from calculon.system import System  # type: ignore[import-not-found]

    lines, refused = [], 0
    for row in filter(expresses, training_shipped(open_catalog()).rows):
        system = System(
            json.loads((options.checkout / f"systems/{SYSTEMS[row.accelerator.id]}.json").read_text("utf-8"))
        )
        try:
            model = Llm(Llm.Application(application(row)), logging.getLogger("calculon"))
            model.compile(system, Llm.Execution.from_json(execution(row)))
            model.run(system)
        except (Llm.Error, AssertionError, ZeroDivisionError) as error:
            refused += 1  # by its own rules, such as heads that the degree does not divide
            print(f"{row.id}: {error}", file=sys.stderr)
            continue
        tokens = row.layout.global_batch * row.sequence_tokens
        lines.append((row.id, f"{tokens / model.get_total_time() / row.layout.gpus:.1f}"))
    with options.output.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("id", "tokens_per_s_per_gpu"), *lines])
    print(f"{len(lines)} rows, {refused} that it refuses", file=sys.stderr)


if __name__ == "__main__":
    main()
