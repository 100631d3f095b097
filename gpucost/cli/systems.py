"""`gpucost systems`: nodes, instances and racks."""

from typing import TYPE_CHECKING, Annotated

import click

from gpucost.arguments.kinds import GPU, PROVIDER, SYSTEM
from gpucost.arguments.signature import PLACE
from gpucost.cli.options import Output, output_options, signature_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@click.command(name="systems")
@signature_options
@output_options
def command(
    catalog: "Catalog",
    out: Output,
    name: Annotated[str | None, SYSTEM, PLACE] = None,
    gpu: Annotated[str | None, GPU, "Only systems with this GPU or family."] = None,
    provider: Annotated[str | None, PROVIDER, "Only this provider's instances."] = None,
) -> None:
    """Nodes, instances and racks: how many GPUs, how they are linked, and by which network nodes meet.

    Links are per GPU and one direction; an empty network means that none is known.

    \b
    gpucost systems p5.48xlarge
    gpucost systems --gpu h100-sxm
    """
    from gpucost.catalog.names import chosen, listed

    rows = catalog.rows("systems")
    if name is not None:
        ids = {match.id for part in listed(name) for match in catalog.systems(part)}
        rows = [row for row in rows if row["id"] in ids]
    if gpu is not None:
        gpus = {match.id for part in listed(gpu) for match in catalog.accelerators(part)}
        rows = [row for row in rows if row["accelerator_id"] in gpus]
    rows = chosen(rows, "provider", provider, (row["provider"] for row in catalog.rows("systems") if row["provider"]))
    out.rows(rows, "systems", catalog)
