"""`gpucost gpus`: accelerators and what is known of them."""

from typing import TYPE_CHECKING, Any

import click

from gpucost.cli.options import Output, envelope, list_options, output_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpucost.catalog import Catalog

COLUMNS = (
    "id", "vendor:5", "form_factor:6", "year:7", "memory_gib=memory:1", "hbm_gb_per_s=bandwidth:2", "bf16_tflops=bf16",
    "fp8_tflops=fp8:4",
    "fp4_tflops=fp4:6", "scaleup_gb_per_s=link:4", "scaleup_gpus=domain:6", "tdp_w=power:3", "confidence:5",
    "source_id:8",
)  # fmt: skip
_MOST_BESIDE = 4
_BESIDE = (
    "vendor", "architecture", "year", "form_factor", "multiprocessors", "memory_gib", "memory_type",
    "hbm_gb_per_s", "l2_mb",
    "bf16_tflops", "fp8_tflops", "fp4_tflops", "scaleup_link", "scaleup_gb_per_s", "scaleup_gpus", "pcie_gb_per_s",
    "tdp_w",
)  # fmt: skip


def beside(catalog: "Catalog", rows: "Sequence[Mapping[str, Any]]") -> list[dict[str, Any]]:
    """Return a row per fact and a column per accelerator: what it is, and its memories from the smallest on."""
    from gpucost.render.numbers import heading_of, measure_of, short_unit

    def total_mib(row: "Mapping[str, Any]", level: str) -> str | None:
        known = [fact for fact in catalog.rows("memory_hierarchy") if fact["level"] == level]
        found = [fact for fact in known if str(row["architecture"]).startswith(fact["architecture"])]
        if not found or not row["multiprocessors"]:
            return None
        each = found[0]["kib_per_multiprocessor"]
        return f"{each * row['multiprocessors'] / 1024:.0f} MiB"

    facts: list[dict[str, Any]] = []
    for name in _BESIDE:
        if name == "memory_gib":  # the memories, from the smallest on
            for level in ("registers", "shared memory"):
                facts.append({"what": level, **{row["id"]: total_mib(row, level) for row in rows}})
            facts.append({"what": "L2 or last cache (MB)", **{row["id"]: row["l2_mb"] for row in rows}})
        if name != "l2_mb":
            unit = short_unit(measure_of(name))
            words = f"{heading_of(name)} ({unit})" if unit else heading_of(name)
            facts.append({"what": words, **{row["id"]: row[name] for row in rows}})
    return [fact for fact in facts if any(fact[row["id"]] is not None for row in rows)]


@click.command(name="gpus")
@list_options("gpus")
@output_options
def command(catalog: "Catalog", out: Output, name: str | None, gpu: str | None, vendor: str | None) -> None:
    """Accelerators: dense peaks, usable memory, links per GPU and direction, power.

    Peaks are dense; sparse_ratio says how much higher the marketed sparse peak is. Empty is unknown. Two to four names
    stand side by side, with their memories from registers to HBM.

    \b
    gpucost gpus h100
    gpucost gpus h100-sxm,mi300x,b200
    gpucost gpus --vendor amd --fields id,memory_gib,bf16_tflops --format csv
    """
    from gpucost.catalog.filters import chosen, listed

    rows = catalog.rows("accelerators")
    asked = name if name is not None else gpu
    if asked is not None:
        wanted = {found.id for part in listed(asked) for found in catalog.accelerators(part)}
        rows = [row for row in rows if row["id"] in wanted]
    rows = chosen(rows, "vendor", vendor)
    plain = out.format == "table" and not out.fields and not out.is_document
    if plain and asked is not None and len(listed(asked)) > 1 and len(rows) <= _MOST_BESIDE:
        facts, names = beside(catalog, rows), [f"{row['id']}" for row in rows]
        out.rows(facts, ("what", *names), envelope(catalog))
        return
    out.rows(rows, COLUMNS, envelope(catalog))
