"""Rows of models/measurements/bench.csv from a file that `gpucost bench` wrote.

    python -m benchmarks.device.record node.json --machine h100 --source gpucost-bench-h100-2026-11
    python -m benchmarks.device.record train-single.csv --machine h100-sxm5-80gb --source gpucost-device-h100-2026-11

Rows of the machine with the same case are replaced, others stay; the file keeps its order of machines. A range is no
figure and left out. Steps that `benchmarks.device.train` measured become rows of models/measurements/memory.csv;
`--machine` is then the accelerator.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

from gpucost.bench.verdict import accelerator_of, range_of
from gpucost.catalog import open_catalog

STEPS = Path(__file__).parents[2] / "models" / "measurements" / "memory.csv"
# as rows of memory name them
OPTIMIZERS = {"fused": "adamw (fused)", "foreach": "adamw (foreach)", "sgd": "sgd with momentum (fused)"}
_RECORD = Path(__file__).parents[2] / "models" / "measurements" / "bench.csv"
STEP = {"recompute": "none", "recipe": "amp", "compiled": 0, "sharding": 0}  # what a training step is where not said


def cell(value: Any) -> str:
    """Write a value as the table does: six significant digits.

    >>> cell(0.123456789), cell(True), cell(None)
    ('0.123457', '1', '')
    """
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else f"{value:.6g}" if isinstance(value, float) else str(value)


def row_of(figure: dict[str, Any], columns: list[str], shared: dict[str, Any]) -> dict[str, str]:
    """Return one figure of a bench as a row."""
    values = {**(STEP if figure["op"] == "train" else {}), "ranks": 1, **shared, **figure, "case": figure["id"]}
    return {name: cell(values.get(name)) for name in columns}


def _record_steps(options: argparse.Namespace) -> None:
    """Append measured steps to the rows of memory; those of the same source are replaced."""
    with options.file.open(encoding="utf-8", newline="") as file:
        measured = list(csv.DictReader(file))
    with STEPS.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        columns, known = list(reader.fieldnames or ()), list(reader)
    shared = {"gpu": options.machine, "source_id": options.source, "as_of": options.date}
    family = options.machine.partition("-")[0]
    # ids of rows: layouts that two GPUs share beside steps of one
    kind = "pair" if options.file.stem == "parallel" else "step"
    rows = []
    for number, row in enumerate(measured):
        # 16 bytes of state under fp32 weights and 8 under bf16 ones; SGD keeps no variance
        state = (8 if row["recipe"] == "bf16" else 16) - (4 if row["optimizer"] == "sgd" else 0)
        batch = int(row["micro_batch"]) * int(row["accumulate"]) * int(row["dp"])
        compiled = "torch.compile per block" if row["compiled"] == "1" else "eager"
        values = {
            **row, **shared, "id": f"{family}-{kind}-{number:02}", "source_name": "gpucost device benchmarks",
            "gated_mlp": "y", "precision": "bf16", "framework": f"plain PyTorch 2.11 {compiled}",
            **{name: row.get(name) or "1" for name in ("pp", "cp", "ep")}, "global_batch": str(batch), "core": "1",
            "flash_attention": "y", "task": "pretrain", "optimizer": OPTIMIZERS[row["optimizer"]],
            "state_bytes_per_param": str(state),
        }  # fmt: skip
        if row["loss_chunk_tokens"] == "0":  # the loss over all logits at once
            values |= {"loss_chunk_tokens": "", "loss_chunk_recompute": ""}
        if row.get("n_experts"):
            values["ffn_hidden"] = row["moe_ffn_hidden"]
        rows.append({column: values.get(column) or "" for column in columns})
    others = [row for row in known if row["source_id"] != options.source]
    with STEPS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--date", default="", help="of steps, as 2026-11-22")
    options = parser.parse_args()
    if options.file.suffix == ".csv":
        _record_steps(options)
        return
    bench = json.loads(options.file.read_text("utf-8"))
    chip = accelerator_of(open_catalog(), bench["machine"]["device"])
    assert chip is not None, bench["machine"]["device"]
    software = f"PyTorch {bench['software']['pytorch'].split('+')[0]}, {bench['software']['toolkit']}"
    shared = {
        "machine": options.machine, "gpu": chip.id, "gpus": bench["machine"]["gpus"], "as_of": bench["started"][:10],
        "software": software, "source_id": options.source,
    }  # fmt: skip
    with _RECORD.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        columns, known = list(reader.fieldnames or ()), list(reader)
    rows = [row_of(figure, columns, shared) for figure in bench["figures"] if not range_of(figure)]
    cases = {row["case"] for row in rows}
    others = [row for row in known if row["machine"] != options.machine or row["case"] not in cases]
    # a new machine stands behind the others
    order = list(dict.fromkeys([*(row["machine"] for row in known), options.machine]))
    whole = sorted([*others, *rows], key=lambda row: order.index(row["machine"]))
    with _RECORD.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(whole)


if __name__ == "__main__":
    main()
