"""A small catalog for tests: two accelerators and whatever rows a test writes."""

import csv
from pathlib import Path

from gpucost.schemas import TABLES

_BLANKS = {"text": "x", "integer": 1, "number": 1.0, "date": "2025-01-01", "flag": 0}


def write(root: Path, table_name: str, rows: list[dict], file: str | None = None) -> Path:
    """Write rows as the table's CSV file; required cells that a row leaves out get a plain value."""
    table = TABLES[table_name]
    path = root / (file or table.files.replace("*", "test"))
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [column.name for column in table.columns]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            unknown = set(row) - set(names)
            assert not unknown, unknown
            blank = {
                column.name: (column.choices[0] if column.choices else _BLANKS[column.kind])
                for column in table.columns
                if column.required
            }
            writer.writerow({**blank, **row})
    return path


def offer(offer_id: str, usd_per_hour: float, observed_on: str, **more) -> dict:
    """Return an offer of one H100 that costs `usd_per_hour`."""
    row = {
        "offer_id": offer_id, "offer_kind": "offer", "provider": "acme", "instance_type": "one",
        "gpu": "h100-sxm5-80gb", "gpus": 1,
        "region": "r1", "region_scope": "region", "option": "on_demand", "billing": "per_use", "term_months": 0,
        "payment": "none",
        "usd_per_hour": usd_per_hour, "usd_per_gpu_hour": usd_per_hour, "observed_on": observed_on,
        "recorded_on": observed_on,
        "date_precision": "day", "source_id": "s", "confidence": "high",
    }  # fmt: skip
    return {**row, **more}


def world(root: Path, offers: list[dict] = ()) -> Path:
    """Write a data folder with two accelerators, a node, a model, a source and the given offers."""
    chips = [
        {
            "id": "h100-sxm5-80gb",
            "name": "H100 SXM5 80GB",
            "form_factor": "SXM5",
            "memory_marketed_gb": 80,
            "memory_gib": 79.6,
            "year": 2022,
        },
        {
            "id": "h100-pcie-80gb",
            "name": "H100 PCIe 80GB",
            "form_factor": "PCIe",
            "memory_marketed_gb": 80,
            "memory_gib": 79.6,
            "year": 2022,
        },
    ]
    write(root, "accelerators", [{**chip, "vendor": "NVIDIA", "source_id": "m"} for chip in chips])
    write(
        root,
        "systems",
        [{"id": "node", "accelerator_id": "h100-sxm5-80gb", "gpus": 8, "kind": "node", "source_id": "m"}],
    )
    write(
        root,
        "llms",
        [
            {
                "id": "tiny-1b",
                "layers": 2,
                "hidden": 64,
                "heads": 2,
                "kv_heads": 2,
                "head_dim": 32,
                "ffn_hidden": 256,
                "source_id": "m",
            }
        ],
    )
    write(root, "model_sources", [{"source_id": "m"}])
    write(root, "price_sources", [{"source_id": "s"}, {"source_id": "t"}])
    write(root, "providers", [{"provider": "acme"}, {"provider": "other"}])
    write(root, "aliases", [])
    write(root, "offers", list(offers))
    return root
