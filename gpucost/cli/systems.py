"""`gpucost systems`: nodes, instances and racks."""

import click

from gpucost.cli.options import catalog_options, emit_rows, envelope, output_options

COLUMNS = (
    "id", "kind:3", "provider:4", "accelerator_id=accelerator", "gpus", "scaleup_gb_per_s=link",
    "scaleup_gpus=domain:2",
    "scaleout_gb_per_s=network", "fabric:3", "max_power_kw=power:4", "confidence:5", "source_id:6",
)  # fmt: skip


@click.command(name="systems")
@click.argument("name", required=False)
@click.option("--gpu", metavar="NAME", help="Only systems with this GPU or family.")
@click.option("--provider", metavar="NAME", help="Only this provider's instances.")
@catalog_options
@output_options
def command(
    name: str | None, gpu: str | None, provider: str | None, as_of: str | None, known_as_of: str | None,
    format_: str, fields: str | None, output: str | None,
) -> None:  # fmt: skip
    """Nodes, instances and racks: how many GPUs, how they are linked, and by which network nodes meet.

    Links are per GPU and one direction; an empty network means that none is named.

    \b
    gpucost systems p5.48xlarge
    gpucost systems --gpu h100-sxm
    """
    from gpucost.catalog import open_catalog
    from gpucost.catalog.filters import chosen, listed

    catalog = open_catalog(as_of, known_as_of)
    rows = catalog.rows("systems")
    if name is not None:
        wanted = {found.id for part in listed(name) for found in catalog.systems(part)}
        rows = [row for row in rows if row["id"] in wanted]
    if gpu is not None:
        gpus = {found.id for part in listed(gpu) for found in catalog.accelerators(part)}
        rows = [row for row in rows if row["accelerator_id"] in gpus]
    rows = chosen(rows, "provider", provider)
    emit_rows(rows, columns=COLUMNS, format_=format_, fields=fields, output=output, envelope=envelope(catalog))
