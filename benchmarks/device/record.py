"""Rows of models/measurements/bench.csv from a file that `gpucost bench` wrote.

    python -m benchmarks.device.record node.json --machine h100 --source gpucost-bench-h100-2026-11

Rows of the machine with the same case are replaced, others stay; the file keeps its order of machines.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

from gpucost.bench.verdict import accelerator_of
from gpucost.catalog import open_catalog

RECORD = Path(__file__).parents[2] / "models" / "measurements" / "bench.csv"
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
    said = {**(STEP if figure["op"] == "train" else {}), "ranks": 1, **shared, **figure, "case": figure["id"]}
    return {name: cell(said.get(name)) for name in columns}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--source", required=True)
    options = parser.parse_args()
    bench = json.loads(options.file.read_text("utf-8"))
    chip = accelerator_of(open_catalog(), bench["machine"]["device"])
    assert chip is not None, bench["machine"]["device"]
    software = f"PyTorch {bench['software']['pytorch'].split('+')[0]}, {bench['software']['toolkit']}"
    shared = {
        "machine": options.machine, "gpu": chip.id, "gpus": bench["machine"]["gpus"], "as_of": bench["started"][:10],
        "software": software, "source_id": options.source,
    }  # fmt: skip
    with RECORD.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        columns, known = list(reader.fieldnames or ()), list(reader)
    rows = [row_of(figure, columns, shared) for figure in bench["figures"] if figure["op"] != "loader"]
    cases = {row["case"] for row in rows}
    kept = [row for row in known if row["machine"] != options.machine or row["case"] not in cases]
    order = list(dict.fromkeys([*(row["machine"] for row in known), options.machine]))
    whole = sorted([*kept, *rows], key=lambda row: order.index(row["machine"]))
    with RECORD.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(whole)


if __name__ == "__main__":
    main()
