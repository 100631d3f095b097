"""`gpucost gpus`: accelerators and what is known of them."""

from typing import TYPE_CHECKING

import click

from gpucost.cli.options import Output, envelope, list_options, output_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

COLUMNS = (
    "id", "vendor:5", "form_factor:6", "year:7", "memory_gib=memory:1", "hbm_gb_per_s=bandwidth:2", "bf16_tflops=bf16",
    "fp8_tflops=fp8:4",
    "fp4_tflops=fp4:6", "scaleup_gb_per_s=link:4", "scaleup_gpus=domain:6", "tdp_w=power:3", "confidence:5",
    "source_id:8",
)  # fmt: skip


@click.command(name="gpus")
@list_options("gpus")
@output_options
def command(catalog: "Catalog", out: Output, name: str | None, gpu: str | None, vendor: str | None) -> None:
    """Accelerators: dense peaks, usable memory, links per GPU and direction, power.

    Peaks are dense; sparse_ratio says how much higher the marketed sparse peak is. Empty is unknown.

    \b
    gpucost gpus h100
    gpucost gpus --vendor amd --fields id,memory_gib,bf16_tflops --format csv
    """
    from gpucost.catalog.filters import chosen, listed

    rows = catalog.rows("accelerators")
    asked = name if name is not None else gpu
    if asked is not None:
        wanted = {found.id for part in listed(asked) for found in catalog.accelerators(part)}
        rows = [row for row in rows if row["id"] in wanted]
    rows = chosen(rows, "vendor", vendor)
    out.rows(rows, COLUMNS, envelope(catalog))
