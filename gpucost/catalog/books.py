"""The user's own book: accelerators, systems, models, prices, discounts and exchange rates beside the shipped facts.

A book is a folder. CSV files carry a table's name (offers.csv or offers/*.csv, accelerators.csv, systems.csv,
models.csv, sources.csv) and need only the columns that cannot be derived. TOML files hold the same as arrays of
tables: [[offer]], [[accelerator]], [[system]], [[model]], [[source]], [[discount]], and [exchange_rates]. A row may
say `like = "<id>"` and then states only what differs. Every row is judged like a shipped one; a bad file loads nothing.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.catalog.offer_rows import complete_offer
from gpucost.catalog.records import OWN_SOURCE
from gpucost.errors import DataError, UsageError
from gpucost.schemas import TABLES

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog

Row = dict[str, Any]

_TABLE_OF = {
    "offer": "offers", "offers": "offers", "accelerator": "accelerators", "accelerators": "accelerators",
    "gpu": "accelerators",
    "system": "systems", "systems": "systems", "model": "llms", "models": "llms", "llms": "llms",
    "source": "price_sources", "sources": "price_sources",
}  # fmt: skip
_DEFAULTS: dict[str, Row] = {
    "accelerators": {
        "vendor": "own", "architecture": "own", "family": "own", "form_factor": "PCIe", "sparse_ratio": 1,
        "scaleup_link": "none",
        "scaleup_gb_per_s": 0, "scaleup_gpus": 1, "memory_type": "unknown", "source_id": OWN_SOURCE,
        "confidence": "medium",
    },
    "systems": {"kind": "node", "source_id": OWN_SOURCE, "confidence": "medium"},
    "llms": {
        "family": "own", "gated": 1, "tied_embeddings": 0, "attention": "gqa", "norm": "rms", "qkv_bias": 0,
        "moe_layer_step": 1,
        "source_id": OWN_SOURCE, "confidence": "medium",
    },
}  # fmt: skip


@dataclass(slots=True)
class Book:
    """What a folder adds: validated rows by table, discounts, and a digest of its files."""

    layer: str
    folder: Path
    digest: str
    rows: dict[str, list[Row]] = field(default_factory=dict)
    discounts: list[Row] = field(default_factory=list)
    exchange_rates: dict[str, float] = field(default_factory=dict)

    @property
    def all_ids(self) -> frozenset[str]:
        """Return the ids of the book's accelerators, systems and models."""
        return self.ids("accelerators") | self.ids("systems") | self.ids("llms")

    def ids(self, table: str) -> frozenset[str]:
        """Return the keys of the rows that the book has of a table."""
        return frozenset(str(row[TABLES[table].key[0]]) for row in self.rows.get(table, ()))


def book_files(folder: Path | None) -> list[Path]:
    """Return the CSV and TOML files of a book, in a fixed order; Parquet price files are read where they lie."""
    if folder is None or not folder.is_dir():
        return []
    return sorted(path for pattern in ("*.csv", "offers/*.csv", "*.toml") for path in folder.glob(pattern))


def parquet_files(folder: Path | None) -> list[Path]:
    """Return a book's price files in Parquet: columns as in the table `offers`."""
    return (
        sorted([*folder.glob("offers.parquet"), *folder.glob("offers/*.parquet")])
        if folder is not None and folder.is_dir()
        else []
    )


def read_book(catalog: "Catalog", layer: str, folder: Path, files: list[Path] | None = None) -> Book:
    """Read and judge every file of a book, or the given ones."""
    files = book_files(folder) if files is None else files
    joined = b"".join(file.name.encode() + b"\0" + file.read_bytes() for file in files)
    digest = blake2b(joined, digest_size=16).hexdigest()
    book = Book(layer, folder, digest)
    drafts = [draft for file in files for draft in _drafts(file, book)]
    order = ("price_sources", "accelerators", "systems", "llms", "offers")
    for table in order:
        for draft in drafts:
            if draft.table == table:
                book.rows.setdefault(table, []).append(_judged(catalog, book, draft))
    _refuse_duplicates(book)
    return book


@dataclass(frozen=True, slots=True)
class Draft:
    """A row as the user wrote it, and where."""

    table: str
    file: Path
    row: int | None
    values: Row


def _drafts(file: Path, book: Book) -> Iterator[Draft]:
    if file.suffix == ".toml":
        yield from _toml_drafts(file, book)
        return
    stem = "offers" if file.parent.name == "offers" else file.stem
    if stem not in _TABLE_OF:
        names = ", ".join(f"{name}.csv" for name in ("offers", "accelerators", "systems", "models", "sources"))
        raise DataError(f"a book's CSV files are called {names}", file=str(file))
    from gpucost.schemas.validation import read_cells

    (_, header), *lines = read_cells(file)
    for number, line in lines:
        if len(line) != len(header):
            raise DataError(
                f"{len(line)} cells where the header has {len(header)}; quote cells that hold commas",
                file=str(file),
                row=number,
            )
        cells = {
            name: cell for name, cell in zip(header, line, strict=True) if cell.strip() and not name.startswith("x_")
        }
        yield Draft(_TABLE_OF[stem], file, number, cells)


def _toml_drafts(file: Path, book: Book) -> Iterator[Draft]:
    from gpucost.catalog.settings import read_toml

    for name, content in read_toml(file).items():
        if name == "discount" and isinstance(content, list):
            book.discounts += [_discount(item, file) for item in content]
        elif name == "exchange_rates" and isinstance(content, dict):
            book.exchange_rates |= {key.upper(): float(value) for key, value in content.items()}
        elif name in _TABLE_OF and isinstance(content, list):
            yield from (Draft(_TABLE_OF[name], file, None, dict(item)) for item in content)
        else:
            known = "[[offer]], [[accelerator]], [[system]], [[model]], [[source]], [[discount]], [exchange_rates]"
            raise DataError(f"has no part called {name!r}. Parts: {known}.", file=str(file))


def _discount(item: Mapping[str, Any], file: Path) -> Row:
    fraction = item.get("fraction")
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction < 1:
        raise DataError(
            f"a discount needs fraction between 0 and 1, found {fraction!r}", file=str(file), column="fraction"
        )
    unknown = set(item) - {
        "fraction",
        "provider",
        "gpu",
        "region",
        "option",
        "instance_type",
        "valid_from",
        "valid_until",
        "notes",
    }
    if unknown:
        raise DataError(f"a discount knows no {', '.join(sorted(unknown))}", file=str(file), column=sorted(unknown)[0])
    return dict(item)


def _judged(catalog: "Catalog", book: Book, draft: Draft) -> Row:
    """Complete a draft and judge it; the first fault is an error that names file, row and column."""
    from gpucost.schemas.validation import check_row

    values = _like(catalog, book, draft)
    if draft.table == "llms" and "config" in values:
        values = {**_from_config(values.pop("config"), draft), **values}
    values = {**_DEFAULTS.get(draft.table, {}), **values}
    extras: Row = {}
    complete = _COMPLETE.get(draft.table)
    try:
        values = complete(catalog, book, values, extras) if complete else values
    except UsageError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(str(error), file=str(draft.file), row=draft.row) from None
    row, faults = check_row(TABLES[draft.table], values, str(draft.file), draft.row)
    if faults:
        raise faults[0].error()
    return {**row, **extras}


def _like(catalog: "Catalog", book: Book, draft: Draft) -> Row:
    """Start from the row that `like` names, the user's own or a shipped one."""
    values = dict(draft.values)
    model = values.pop("like", None)
    key = TABLES[draft.table].key[0]
    if model is None and draft.table == "offers":
        model = values.get(key)
    if model is None:
        return values
    rows = [*book.rows.get(draft.table, ()), *catalog.shipped_like(draft.table, str(model))]
    base = next((row for row in rows if str(row[key]) == catalog.canonical(draft.table, str(model))), None)
    if base is None:
        if draft.table == "offers" and "like" not in draft.values:
            return values
        raise DataError(
            f"like = {model!r} names no row of {draft.table}", file=str(draft.file), row=draft.row, column="like"
        )
    inherited = {
        name: value
        for name, value in base.items()
        if value is not None and name not in _NEVER_INHERITED[draft.table == "offers"]
    }
    return {**inherited, "source_id": OWN_SOURCE, **values}


_PROVENANCE = frozenset(("source_id", "second_source_id", "notes", "confidence"))
_NEVER_INHERITED = (
    _PROVENANCE,
    _PROVENANCE
    | {
        "usd_per_hour",
        "usd_per_gpu_hour",
        "valid_from",
        "observed_on",
        "recorded_on",
        "upfront_usd",
        "recurring_usd_per_hour",
    },
)


def _from_config(config: Any, draft: Draft) -> Row:
    from gpucost.architectures.reader import read_config

    path = Path(str(config)).expanduser()
    made = asdict(read_config(path if path.is_absolute() else draft.file.parent / path))
    columns = set(TABLES["llms"].names)
    return {name: value for name, value in made.items() if name in columns and name != "notes" and value != ""}


# --- completing what can be derived


def _complete_offer(catalog: "Catalog", book: Book, values: Row, extras: Row) -> Row:
    extras["price_kind"] = str(values.pop("price_kind", "contracted"))
    if extras["price_kind"] not in ("list", "contracted", "effective"):
        raise UsageError(f"price_kind {extras['price_kind']!r} is none of list, contracted, effective.")
    if "gpu" in values:
        values["gpu"] = _accelerator_id(catalog, book, str(values["gpu"]))
    if "system" in values:
        name = str(values.pop("system"))
        values["system_id"] = name if name in book.ids("systems") else catalog.canonical("systems", name)
    return complete_offer(values, {**catalog.exchange_rates, **book.exchange_rates})


def _complete_accelerator(catalog: "Catalog", book: Book, values: Row, extras: Row) -> Row:
    if "memory_marketed_gb" in values:
        values.setdefault("memory_gib", values["memory_marketed_gb"])
    if "memory_gib" in values:
        values.setdefault("memory_marketed_gb", values["memory_gib"])
    values.setdefault("name", values.get("id", ""))
    if "year" not in values:
        values["year"] = catalog.as_of.year
    return values


def _complete_system(catalog: "Catalog", book: Book, values: Row, extras: Row) -> Row:
    name = values.pop("gpu", None) or values.get("accelerator_id")
    if name is None:
        raise UsageError("a system needs accelerator_id.")
    values["accelerator_id"] = _accelerator_id(catalog, book, str(name))
    rows = [*book.rows.get("accelerators", ()), *catalog.shipped_like("accelerators", values["accelerator_id"])]
    chip: Row = next((row for row in rows if row["id"] == values["accelerator_id"]), {})
    values.setdefault("name", values.get("id", ""))
    values.setdefault("scaleup_gb_per_s", chip.get("scaleup_gb_per_s", 0))
    values.setdefault("scaleup_gpus", chip.get("scaleup_gpus", 1))
    return values


def _complete_model(catalog: "Catalog", book: Book, values: Row, extras: Row) -> Row:
    for column in TABLES["llms"].columns:
        if column.kind == "integer" and column.required and not column.positive:
            values.setdefault(column.name, 0)
    values.setdefault("kv_heads", values.get("heads"))
    if not values.get("head_dim") and values.get("hidden") and values.get("heads"):
        values["head_dim"] = int(values["hidden"]) // int(values["heads"])
    return values


def _complete_source(catalog: "Catalog", book: Book, values: Row, extras: Row) -> Row:
    values.setdefault("title", values.get("source_id", ""))
    values.setdefault("locator", str(book.folder))
    return values


_COMPLETE: dict[str, Callable[["Catalog", Book, Row, Row], Row]] = {
    "offers": _complete_offer,
    "accelerators": _complete_accelerator,
    "systems": _complete_system,
    "llms": _complete_model,
    "price_sources": _complete_source,
}


def _accelerator_id(catalog: "Catalog", book: Book, name: str) -> str:
    own = book.ids("accelerators")
    return name if name in own else catalog.shipped_accelerator_names.one(name)


def _refuse_duplicates(book: Book) -> None:
    for name, rows in book.rows.items():
        seen = set()
        for row in rows:
            key = tuple(row[column] for column in TABLES[name].key)
            if key in seen:
                raise DataError(
                    f"two rows of {name} have the same {', '.join(TABLES[name].key)}: {row[TABLES[name].key[0]]}",
                    file=str(book.folder),
                )
            seen.add(key)


def as_csv(table: str, rows: list[Row], further: tuple[str, ...] = ()) -> str:
    """Write validated rows as CSV in the schema's order, for the loader to read."""
    import io

    out = io.StringIO()
    names = (*TABLES[table].names, *further)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    return "" if value is None else int(value) if isinstance(value, bool) else value
