"""Rows of a price book beside its prices: what follows is filled in, then they are judged; and what its names mean."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from msgspec.structs import asdict

from gpucost import gate
from gpucost.catalog import names
from gpucost.catalog.book_files import Draft, Row
from gpucost.catalog.names import NameIndex
from gpucost.catalog.records import OWN_SOURCE
from gpucost.catalog.shipped import KINDS, Shipped
from gpucost.errors import DataError, UsageError
from gpucost.schemas import TABLES

_DEFAULTS: dict[str, Row] = {
    "accelerators": {
        "vendor": "own",
        "architecture": "own",
        "family": "own",
        "form_factor": "PCIe",
        "sparse_ratio": 1,
        "scaleup_link": "none",
        "scaleup_gb_per_s": 0,
        "scaleup_gpus": 1,
        "memory_type": "unknown",
        "source_id": OWN_SOURCE,
        "confidence": "medium",
    },
    "capacity": {"basis": "own", "source": "the user's own book"},
    "systems": {"kind": "node", "source_id": OWN_SOURCE, "confidence": "medium"},
    "llms": {
        "family": "own",
        "gated": 1,
        "tied_embeddings": 0,
        "attention": "gqa",
        "norm": "rms",
        "qkv_bias": 0,
        "moe_layer_step": 1,
        "source_id": OWN_SOURCE,
        "confidence": "medium",
    },
}
_PROVENANCE = frozenset(("source_id", "second_source_id", "notes", "confidence"))


class Completion:
    """What is needed to complete the rows of one book: the shipped facts, its own rows so far, its exchange rates."""

    def __init__(self, shipped: Shipped, rows: Mapping[str, Sequence[Row]], rates: Mapping[str, float]) -> None:
        self.shipped, self._rows = shipped, rows
        self._indices: dict[str, NameIndex] = {}
        self._by_key: dict[str, tuple[int, dict[str, Row]]] = {}
        self.rates = {**shipped.exchange_rates, **rates}
        self.prices = ""  # the SQL of the book's own prices, once they are read

    def row(self, draft: Draft) -> Row:
        """Complete a row and judge it; the first fault is an error that names file, row and column."""
        from gpucost.schemas.validation import check_row

        values = dict(draft.values)
        # `like` names a row to start from, one's own or a shipped one
        if (name := values.pop("like", None)) is not None:
            ids = self._index(draft.table).matches(str(name)) if draft.table in KINDS else []
            base = self._row_of(draft.table, ids[0] if len(ids) == 1 else str(name))
            if base is None:
                raise draft.error(f"like = {name!r} names no row of {draft.table}", "like")
            # whatever a source says of the shipped row, it says nothing of this one
            inherited = {name: value for name, value in base.items() if value is not None and name not in _PROVENANCE}
            values = {**inherited, "source_id": OWN_SOURCE, **values}
        # a config.json beside the book gives what the row of a model does not say
        if draft.table == "llms" and "config" in values:
            from gpucost.architectures.config import load
            from gpucost.architectures.reader import read_config

            path = gate.expanded(str(values.pop("config")))
            path = path if path.is_absolute() else draft.file.parent / path
            path = path / "config.json" if path.is_dir() else path
            architecture = asdict(read_config(path))
            columns = set(TABLES["llms"].names) - {"notes"}
            of_file = {name: value for name, value in architecture.items() if name in columns and value != ""}
            values = {**of_file, "config": json.dumps(load(path)), **values}
        # what is still empty is as it is for most: each default is the weakest that its checks allow
        values = {**_DEFAULTS.get(draft.table, {}), **values}
        try:
            complete = _COMPLETE.get(draft.table)
            values = complete(self, values) if complete else values
        except UsageError as error:
            # a fault in another file, such as config.json, keeps its place
            raise error if isinstance(error, DataError) and error.file else draft.error(str(error)) from None
        row, faults = check_row(TABLES[draft.table], values, draft.place, draft.row)
        if faults:  # what the user wrote comes before what follows from it
            raise next((fault for fault in faults if fault.column in draft.values), faults[0]).error()
        return row

    def has(self, table: str, name: str) -> bool:
        """Tell whether the book itself has a row of that key."""
        return name in self._owned(table)

    def _owned(self, table: str) -> dict[str, Row]:
        """Return the book's own rows of a table so far by their keys, of equal ones the first."""
        rows = self._rows.get(table, ())
        counted, by_key = self._by_key.get(table, (0, {}))
        # rows join while the book is read: those counted already are not walked again
        for row in rows[counted:]:
            by_key.setdefault(str(row[TABLES[table].key[0]]), row)
        self._by_key[table] = len(rows), by_key
        return by_key

    def _row_of(self, table: str, id_: str) -> Row | None:
        """Return the row of an id, the book's own first."""
        if row := self._owned(table).get(id_):
            return row
        rows = self.shipped.rows_of(table, id_)
        return rows[0] if rows else None

    def _index(self, table: str) -> NameIndex:
        if table not in self._indices:
            self._indices[table] = self.shipped.index(table)
        return self._indices[table]

    def accelerator(self, name: str) -> str:
        """Return the id of the accelerator that a name means, the book's own first."""
        return name if self.has("accelerators", name) else self._index("accelerators").one(name)

    def system(self, name: str) -> str:
        """Return the id of the system that a name means, the book's own first."""
        return name if self.has("systems", name) else self._index("systems").one(name)

    def accelerators(self, name: str) -> list[str]:
        """Return every accelerator that a name means, the book's own first."""
        return [name] if self.has("accelerators", name) else self._index("accelerators").several(name)

    def holds(self, id_: str) -> str | None:
        """Return the accelerator of a system, the book's own first."""
        node = self._owned("systems").get(id_) or self._index("systems").rows.get(id_)
        return str(node["accelerator_id"]) if node else None

    def provider(self, name: str) -> str:
        """Return the provider that a name means, whatever the case; one that nobody knows is as it is written."""
        id_or_name = self.shipped.alias("provider", name)
        return self._providers.get(id_or_name.lower(), id_or_name)

    @cached_property
    def _providers(self) -> dict[str, str]:
        return {name.lower(): name for name in self.shipped.recorded("provider")}

    def recorded(self, column: str) -> frozenset[str]:
        """Return the values that prices have in a column, shipped and the book's own."""
        if not self.prices:
            return self.shipped.recorded(column)
        rows = self.shipped.store.fetch(f'SELECT DISTINCT "{column}" AS value FROM ({self.prices})')
        return self.shipped.recorded(column) | {str(row["value"]) for row in rows if row["value"]}

    def chip(self, values: Row) -> Row:
        """Complete an accelerator: its name, its year and either size of its memory."""
        # either size stands for the other where only one is stated
        for name, twin in (("memory_gib", "memory_marketed_gb"), ("memory_marketed_gb", "memory_gib")):
            if twin in values:
                values.setdefault(name, values[twin])
        return {"name": values.get("id", ""), "year": self.shipped.as_of.year, **values}

    def node(self, values: Row) -> Row:
        """Complete a node: the links between its accelerators are theirs."""
        name = values.pop("gpu", None) or values.get("accelerator_id")
        if name is None:
            raise UsageError("a system needs accelerator_id.")
        values["accelerator_id"] = self.accelerator(str(name))
        chip = self._row_of("accelerators", values["accelerator_id"]) or {}
        links = {"scaleup_gb_per_s": chip.get("scaleup_gb_per_s", 0), "scaleup_gpus": chip.get("scaleup_gpus", 1)}
        return {"name": values.get("id", ""), **links, **values}

    def capacity(self, values: Row) -> Row:
        """Complete what a seller sells at once: its provider and accelerators are ids; the count may be `gpus`."""
        if "gpus" in values:
            values.setdefault("largest_gpus", values.pop("gpus"))
        if values.get("provider"):
            values["provider"] = self.provider(str(values["provider"]))
        if values.get("gpu"):
            values["gpu"] = " ".join(id_ for name in names.listed(values["gpu"]) for id_ in self.accelerators(name))
        return values

    def source(self, values: Row) -> Row:
        """Complete a source, of which only its id is needed."""
        return {"title": values.get("source_id", ""), "locator": "the user's own book", **values}

    def model(self, values: Row) -> Row:
        """Complete an architecture: dimensions that it lacks are zero, heads and their width follow."""
        for column in TABLES["llms"].columns:
            if column.kind == "integer" and column.required and not column.positive:
                values.setdefault(column.name, 0)
        values.setdefault("kv_heads", values.get("heads"))
        if not values.get("head_dim") and values.get("hidden") and values.get("heads"):
            with suppress(ValueError, ZeroDivisionError, OverflowError):  # what is no count is judged with its row
                values["head_dim"] = int(float(values["hidden"]) // float(values["heads"]))
        return values


_COMPLETE: dict[str, Callable[[Completion, Row], Row]] = {
    "accelerators": Completion.chip,
    "systems": Completion.node,
    "llms": Completion.model,
    "price_sources": Completion.source,
    "capacity": Completion.capacity,
}
