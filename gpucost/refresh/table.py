"""A file of prices of one's own: CSV, .xlsx or Parquet, its columns named as ours or mapped to them."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from gpucost import gate
from gpucost.catalog.loader import file_name, named, quoted, refuse_long
from gpucost.errors import DataError, UsageError
from gpucost.limits import limit
from gpucost.refresh import source
from gpucost.refresh.source import Desk, Source

ENDINGS = (".csv", ".xlsx", ".parquet")


def is_table(name: str) -> bool:
    """Tell whether a name is that of a file of prices."""
    return Path(name).suffix.lower() in ENDINGS


def source_of_file(name: str) -> Source:
    """Return the source that a file is."""
    path = gate.expanded(name)
    if not path.is_file():
        raise UsageError(f"cannot read {name!r}: there is no such file. Check the path.")
    return Source(
        f"file-{path.stem.lower()[:40]}",
        "a file of one's own",
        path.name,
        path.name,
        lambda desk: read(desk, path),
        heeds=("columns",),
        is_own_word=True,
    )


def read(desk: Desk, path: Path) -> None:
    """Read a file into the listing, by the names of its columns or as they are mapped.

    A price that says no day is as old as the file.
    """
    ending = path.suffix.lower()
    if path.stat().st_size > limit("limit_book_file_bytes"):
        raise DataError(f"is larger than {limit('limit_book_file_bytes') / 1e6:,.0f} MB", file=path.name)
    if ending == ".csv":
        reader = source.csv_text(path)
    elif ending == ".parquet":
        refuse_long(desk.connection, path, "limit_book_rows")
        reader = f"read_parquet({file_name(path)})"
    else:  # a workbook: its first sheet that has a header
        import csv

        from gpucost.catalog.sheets import read_sheets

        sheets = read_sheets(path)
        if not sheets:
            raise DataError("has no sheet with a header", file=path.name)
        copy = desk.path("sheet.csv")
        with copy.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(sheets[0].header)
            writer.writerows(cells[: len(sheets[0].header)] for _, cells in sheets[0].rows)
        reader = source.csv_text(copy)
    theirs = source.columns_of(desk, reader)
    columns = mapping(theirs, desk.options.get("columns") or {}, path.name)
    cells = {name: source.cell_sql(value, source.LISTING[name]) for name, value in columns.items()}
    if "upfront_usd" in cells:  # without one of two amounts the other is no price
        for name in ("usd_per_hour", "upfront_usd"):
            cells[name] = (
                f"coalesce({cells[name]}, CASE WHEN {source.has_digit(columns[name])} THEN CAST('nan' AS DOUBLE) END)"
            )
    # a file from a computer whose clock is ahead is of today
    saved_on = min(date.fromtimestamp(path.stat().st_mtime), desk.today)
    cells["observed_on"] = f"coalesce({cells.get('observed_on', 'NULL')}, {source.day_sql(saved_on)})"
    selected = ", ".join(f"{cell} AS {name}" for name, cell in cells.items())
    desk.select(f"SELECT {selected} FROM {reader}")


def mapping(theirs: set[str], stated: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the SQL of each of our columns that a file has: what the user states, else what is called alike."""
    plain = {column.strip().lower().replace(" ", "_"): column for column in theirs}
    columns: dict[str, str] = {}
    for ours in source.LISTING:
        if ours in stated:
            value = stated[ours]  # a column of the file, or =text for a constant
            if not value.startswith("=") and value not in theirs:
                raise UsageError(f"{name} has no column {value!r}. It has {', '.join(sorted(theirs)[:30])}.")
            columns[ours] = quoted(value[1:]) if value.startswith("=") else named(value)
        else:
            alike = [plain[spelling] for spelling in (ours, *source.ALSO_CALLED[ours]) if spelling in plain]
            if alike:
                columns[ours] = named(alike[0])
    if unknown := sorted(set(stated) - set(source.LISTING)):
        raise UsageError(f"no column is called {unknown[0]!r}. Ours are {', '.join(source.LISTING)}.")
    if missing := [column for column in ("provider", "usd_per_hour") if column not in columns]:
        raise UsageError(f"{name}: say what {missing[0]} is, such as --map {missing[0]}=<its column>.")
    if "instance_type" not in columns and "listed_as" in columns:  # as markets call what they sell: 8x H100
        columns["instance_type"] = f"concat_ws('x ', {columns.get('gpus', '1')}, {columns['listed_as']})"
    return columns
