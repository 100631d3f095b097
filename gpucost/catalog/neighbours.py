"""What the rows of one table owe to others: keys, descriptions, grids and names that a new row is easily added without.

A file may be right by itself and the collection still lack something; here each lack is said with what to add where.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpucost.options import OPTIONS
from gpucost.schemas import TABLES, Table


class Placed(NamedTuple):
    """A row with its file and its number in it."""

    file: Path
    number: int
    row: Mapping[str, Any]


class Lack(NamedTuple):
    """What a row lacks elsewhere; a doubt is said aloud and accepted."""

    place: Placed
    column: str
    reason: str
    doubt: bool = False


Tables = Mapping[str, Sequence[Placed]]


def lacks(tables: Tables) -> Iterator[Lack]:
    """Yield what the rows of a whole collection owe one another."""
    for name, rows in tables.items():
        yield from _repeated(TABLES[name], rows)
    for look in (_grids, _nodes, _aliases, _unused_sources):
        yield from look(tables)


def _values(tables: Tables, name: str, column: str) -> set[Any]:
    return {placed.row[column] for placed in tables.get(name, ())}


def _repeated(table: Table, rows: Iterable[Placed]) -> Iterator[Lack]:
    """Find keys that another file of the table has already; within one file it is found with the file."""
    first: dict[tuple[Any, ...], Placed] = {}
    for placed in rows:
        key = tuple(placed.row[column] for column in table.key)
        seen = first.setdefault(key, placed)
        if seen.file != placed.file:
            reason = f"the same {', '.join(table.key)} as in {seen.file.name}, row {seen.number}; drop one of them"
            yield Lack(placed, table.key[0], reason)


def _grids(tables: Tables) -> Iterator[Lack]:
    """Find regions of which nobody says whose electricity they run on."""
    known = {(placed.row["provider"], placed.row["region"]) for placed in tables.get("cloud_regions", ())}
    for placed in tables.get("offers", ()):
        provider, region = placed.row["provider"], placed.row["region"]
        if region and not known & {(provider, region), ("any", region)}:
            known.add((provider, region))
            yield Lack(placed, "region", f"{region!r} of {provider} is not in pricing/cloud_regions.csv; add its grid")


def _nodes(tables: Tables) -> Iterator[Lack]:
    """Find offers whose node holds another accelerator, or fewer of them."""
    nodes = {placed.row["id"]: placed.row for placed in tables.get("systems", ())}
    for placed in tables.get("offers", ()):
        node = nodes.get(placed.row["system_id"])
        if node and (node["accelerator_id"] != placed.row["gpu"] or node["gpus"] < placed.row["gpus"]):
            reason = f"{node['id']} holds {node['gpus']} × {node['accelerator_id']}, the offer is of others or of more"
            yield Lack(placed, "system_id", reason)


def _aliases(tables: Tables) -> Iterator[Lack]:
    named: dict[str, Callable[[], set[Any]]] = {
        "accelerator": lambda: _values(tables, "accelerators", "id"),
        "flagship": lambda: _values(tables, "accelerators", "id"),
        "system": lambda: _values(tables, "systems", "id"),
        "model": lambda: _values(tables, "llms", "id"),
        "provider": lambda: _values(tables, "providers", "provider"),
        "region": lambda: _values(tables, "cloud_regions", "region"),
        "option": lambda: set(OPTIONS),
    }
    ids = {kind: make() for kind, make in named.items()}
    for placed in tables.get("aliases", ()):
        kind, alias, meant = (placed.row[column] for column in ("kind", "alias", "id"))
        if meant not in ids[kind]:
            yield Lack(placed, "id", f"{meant!r} is no {kind} that the tables know")
        if alias != alias.lower():
            yield Lack(placed, "alias", f"{alias!r} is compared in lower case; write {alias.lower()!r}")


def _unused_sources(tables: Tables) -> Iterator[Lack]:
    for name in ("price_sources", "model_sources"):
        folder = TABLES[name].files.split("/")[0]
        used = {
            placed.row.get(column)
            for table, rows in tables.items()
            if TABLES[table].files.startswith(folder)
            for column in ("source_id", "second_source_id")
            for placed in rows
            if table != name
        }
        for placed in tables.get(name, ()):
            if placed.row["source_id"] not in used:
                yield Lack(placed, "source_id", "no row names this source yet", doubt=True)
