"""Rows of the catalog as records that travel between the floors, and the node that a chip is assumed to sit in."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from gpucost.types import Accelerator, Architecture, Offer, ServedAs, System
from gpucost.units import BITS_PER_BYTE

OWN_SOURCE = "user"  # source_id of the figures of a user's own book

Record = TypeVar("Record", Accelerator, Architecture, System, Offer, ServedAs)


_DEFAULTS: dict[str, tuple[tuple[str, Any], ...]] = {}


def _defaults(kind: type[Record]) -> tuple[tuple[str, Any], ...]:
    """Return a record's fields, each with what an empty cell becomes: the default, "" for text, None for a number."""
    if kind.__name__ not in _DEFAULTS:
        empty = {name: "" if type_ is str else None for name, type_ in kind.__annotations__.items()}
        # defaults belong to the last fields, as in a signature
        stated = zip(reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False)
        _DEFAULTS[kind.__name__] = tuple({**empty, **dict(stated)}.items())
    return _DEFAULTS[kind.__name__]


def record(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """Build a record from a row; columns that the record lacks are dropped, empty cells become its defaults."""
    values = {}
    for name, default in _defaults(kind):
        value = row.get(name)
        values[name] = default if value is None else value
    return kind(**values)


def records(kind: type[Record], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Record]:
    """Build many records from rows of cells in the order of the named columns."""
    fields = _defaults(kind)
    places = [names.index(name) if name in names else -1 for name, _ in fields]  # the last cell is None
    pick: Callable[[Sequence[Any]], Sequence[Any]] = itemgetter(*places)
    filled = [(position, default) for position, (_, default) in enumerate(fields) if default is not None]
    instances: list[Record] = []
    cells_of_row: Sequence[Any]
    for cells_of_row in rows:
        cells = [*pick([*cells_of_row, None])]
        for position, default in filled:
            if cells[position] is None:
                cells[position] = default
        instances.append(kind(*cells))
    return instances


def cells_of(kind: type[Record], without: Collection[str] = ()) -> Iterator[str]:
    """Yield the SQL of a row's cells in the order of a record's fields, empty ones as the record has them."""
    for name, default in _defaults(kind):
        if name not in without:
            cell = f'"{name}"'
            literal = f"'{default}'" if isinstance(default, str) else str(default)
            yield cell if default is None else f"coalesce({cell}, {literal}) AS {cell}"


def seen_in(row: Mapping[str, Any], column: str) -> str:
    """Return when the price of a row was seen: a year, a month or a span of them.

    >>> seen_in({"seen_since": "2025-03", "seen": "2026"}, "seen")
    '2025-03..2026'
    """
    since, last = row[f"{column}_since"], row[column]
    return f"{since}..{last}" if since and last else str(last or "")


def architecture(row: Mapping[str, Any]) -> Architecture:
    """Build an architecture from its row, layer by layer where the row holds a configuration; the id is its name."""
    if not row.get("config"):
        return record(Architecture, {**row, "name": row["id"]})
    # a model whose layers differ is known by its published configuration alone
    config = json.loads(row["config"])
    from gpucost.architectures.reader import architecture_of

    built = architecture_of(config, row["id"], f"models/llms.csv: {row['id']}")
    return replace(
        built, family=row["family"], source_id=row["source_id"], notes=row["notes"] or "", status="sourced", warnings=()
    )


# --- The node that an accelerator or an offer is assumed to sit in when the tables name none.

_KIND_ORDER = ("node", "baseboard", "rack", "cloud")

# Scale-out bandwidth per GPU of the usual server of its year, GB/s one direction: one 100, 200, 400 or 800 Gbit/s port
# for each board-mounted GPU; two shared 200 Gbit/s ports per 8 cards on PCIe.
_PORT_GB_PER_S = ((2025, 100.0), (2022, 50.0), (2020, 25.0), (0, 12.5))
_PCIE_PORT_GB_PER_S = 6.25
_PCIE_FORMS = ("pcie", "pcie lp")


def default_system(accelerator: Accelerator, systems: Sequence[System]) -> System:
    """Return the vendor's own node of this accelerator, 8 GPUs preferred, else a synthesised one.

    Where the node names no network between nodes, an assumed one is added and the node is marked as synthesised.
    """
    if accelerator.form_factor.lower() in _PCIE_FORMS:
        port_gb_per_s = _PCIE_PORT_GB_PER_S
    else:
        port_gb_per_s = next(rate for year, rate in _PORT_GB_PER_S if accelerator.year >= year)
    fabric = f"assumed: {port_gb_per_s * BITS_PER_BYTE:g} Gbit/s per GPU, usual for its year and form"
    nodes = [system for system in systems if system.accelerator_id == accelerator.id]
    if not nodes:
        return System(
            id=f"assumed-{accelerator.id}-8",
            name=f"assumed server with 8 {accelerator.name}",
            kind="synthesised",
            accelerator_id=accelerator.id,
            gpus=8,
            scaleup_gb_per_s=accelerator.scaleup_gb_per_s,
            scaleup_gpus=max(1, accelerator.scaleup_gpus),
            scaleout_gb_per_s=port_gb_per_s,
            fabric=fabric,
            max_power_kw=None,
            status="synthesised",
        )

    def preference(system: System) -> tuple[object, ...]:
        kind = _KIND_ORDER.index(system.kind) if system.kind in _KIND_ORDER else len(_KIND_ORDER)
        cloud = system.kind == "cloud"
        # Clouds also sell parts of a node, alone and without the network: 16 GPUs are nearer to 8 than one is.
        far = abs(math.log2(system.gpus / 8))
        no_network = system.scaleout_gb_per_s is None
        return (cloud, cloud and no_network, far, no_network, kind, system.id)

    best = min(nodes, key=preference)
    if best.scaleout_gb_per_s is not None:
        return best
    return replace(best, scaleout_gb_per_s=port_gb_per_s, fabric=fabric, status="synthesised")


def offer_system(offer: Offer, accelerator: Accelerator) -> System:
    """Return the node that an unlisted offer describes: its GPUs, their links, and no network between nodes."""
    # one GPU has none to link to; instances of several have the links of their board
    linked = accelerator.scaleup_gb_per_s > 0 and offer.gpus > 1
    return System(
        id=f"{offer.provider}-{offer.instance_type}".lower().replace(" ", "-"),
        name=f"{offer.provider} {offer.instance_type}",
        kind="synthesised",
        accelerator_id=accelerator.id,
        gpus=offer.gpus,
        scaleup_gb_per_s=accelerator.scaleup_gb_per_s if linked else 0.0,
        scaleup_gpus=min(offer.gpus, max(1, accelerator.scaleup_gpus)) if linked else 1,
        scaleout_gb_per_s=None,
        fabric="not stated",
        provider=offer.provider,
        instance_type=offer.instance_type,
        status="synthesised",
        source_id=offer.source_id,
    )
