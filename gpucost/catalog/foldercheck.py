"""Checking a whole data folder: every file of every table, each against the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

from gpucost.catalog.checks import Reference, check_rows, reference
from gpucost.catalog.neighbours import Placed, lacks
from gpucost.catalog.paths import table_files
from gpucost.schemas import TABLES, Table
from gpucost.schemas.validation import Fault, check_file, read_cells


@dataclass(slots=True)
class Report:
    """What was checked and what was found."""

    files: int = 0
    rows: int = 0
    faults: list[Fault] = field(default_factory=list)
    doubts: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault, root: Path | None, doubt: bool = False) -> None:
        """Take a fault or a doubt in, its file named below the data root."""
        path = Path(fault.file)
        if root is not None and path.is_relative_to(root):
            fault = replace(fault, file=str(path.relative_to(root)))
        (self.doubts if doubt else self.faults).append(fault)


def check_folder(root: Path) -> Report:
    """Check every file of every table of a data folder, each against the others."""
    report = Report()
    checked: dict[str, list[Placed]] = {}
    for table in TABLES.values():
        for path in table_files(root, table):
            rows, faults = check_file(table, path)
            report.files, report.rows = report.files + 1, report.rows + len(rows)
            for fault in (*faults, *order_faults(table, path)):
                report.add(fault, root)
            if not faults:
                numbered = zip(line_numbers(path), rows, strict=True)
                checked.setdefault(table.name, []).extend(Placed(path, number, row) for number, row in numbered)
    known = reference(lambda name: [placed.row for placed in checked.get(name, ())], date.today())
    for name, placed in checked.items():
        for path, group in groupby(placed, key=lambda one: one.file):
            judge(report, TABLES[name], path, [(one.number, one.row) for one in group], known, root)
    for lack in lacks(checked):
        report.add(Fault(str(lack.place.file), lack.place.number, lack.column, lack.reason), root, lack.doubt)
    return report


def order_faults(table: Table, path: Path) -> list[Fault]:
    """Shipped files hold the schema's columns in the schema's order, so that they load without being sniffed."""
    header, names = read_cells(path)[0][1], list(table.names)
    if header == names:
        return []
    same = set(header) == set(names)
    what = "the columns of shipped files stand in the schema's order" if same else "shipped files hold every column"
    return [Fault(str(path), 1, None, f"{what} of {table.name}: {', '.join(names)}")]


def judge(
    report: Report,
    table: Table,
    path: Path,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    known: Reference,
    root: Path | None,
) -> None:
    """Judge the rows of a file against the tables that they name."""
    for row, column, reason, doubt in check_rows(table, rows, known):
        report.add(Fault(str(path), row, column, reason), root, doubt)


def line_numbers(path: Path) -> list[int]:
    """Return the line on which each row of a file stands."""
    return [number for number, _ in read_cells(path)[1:]]
