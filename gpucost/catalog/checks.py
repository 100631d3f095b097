"""What is wrong with well-formed rows: references, dates, ranges, accelerators held to their sisters; whole folders."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from gpucost import clock
from gpucost.catalog.availability import Availability
from gpucost.catalog.loader import Store, table_files
from gpucost.catalog.price_checks import ANNOUNCED_DAYS, FILE_STEP, Finding, Reference, check_prices, load_prices
from gpucost.catalog.records import OWN_SOURCE
from gpucost.options import OPTIONS
from gpucost.schemas import TABLES, DataTable
from gpucost.schemas.validation import Fault, check_file, read_cells

Rows = Sequence[Mapping[str, Any]]


def reference(rows_of: Callable[[str], Rows], today: date) -> Reference:
    """Gather what rows are held against from a catalog's tables."""
    keys = {
        name: frozenset(str(row[TABLES[name].key[0]]) for row in rows_of(name))
        for name in TABLES
        if len(TABLES[name].key) == 1
    }
    # on a computer whose clock is behind, the newest price is no price of the future
    newest = max((row["recorded_on"] for row in rows_of("offers")), default=today)
    chips, nodes = ({str(row["id"]): row for row in rows_of(name)} for name in ("accelerators", "systems"))
    return Reference(keys, chips, nodes, max(today, newest), Availability(rows_of("availability"), today))


def check_rows(
    table: DataTable, rows: Sequence[tuple[int, Mapping[str, Any]]], reference: Reference
) -> Iterator[Finding]:
    """Yield what is wrong or odd about well-formed rows of any table but prices, each with its row number."""
    sources = "price_sources" if table.files.startswith("pricing") else "model_sources"
    for number, row in rows:
        # keys of other tables
        for column in table.columns:
            value = row.get(column.name)
            if not column.refers_to or value is None:
                continue
            target = sources if column.refers_to == "sources" else column.refers_to
            if target in reference.keys and value not in reference.keys[target] and value != OWN_SOURCE:
                reason = f"{value!r} is not in {TABLES[target].files}: add it there, or name one that is there"
                yield Finding(number, column.name, reason)

        for name in ("observed_on", "recorded_on", "accessed_on", "published_on"):
            value = row.get(name)
            if value is not None and value > reference.today:
                yield Finding(number, name, f"{value} lies in the future")
        observed, recorded, valid = row.get("observed_on"), row.get("recorded_on"), row.get("valid_from")
        if observed and recorded and recorded < observed:
            yield Finding(number, "recorded_on", f"{recorded} lies before the observation on {observed}")
        if observed and valid and valid - observed > timedelta(days=ANNOUNCED_DAYS):
            reason = f"{valid} lies more than {ANNOUNCED_DAYS} days after the observation on {observed}"
            yield Finding(number, "valid_from", reason)

        low, typical, high = row.get("low"), row.get("typical"), row.get("high")
        if typical is not None and ((low is not None and low > typical) or (high is not None and high < typical)):
            yield Finding(number, "typical", f"{typical:g} lies outside its range")
        if table.name == "accelerators":
            yield from _accelerator_findings(number, row, reference)


# --- accelerators


def _accelerator_findings(number: int, row: Mapping[str, Any], reference: Reference) -> Iterator[Finding]:
    """Hold a chip to those of its architecture: the slips of datasheets are factors of two."""
    alike = (chip for chip in reference.accelerators.values() if chip["architecture"] == row["architecture"])
    peers = [chip for chip in alike if chip["id"] != row["id"]]
    # The ratio of a peak to the FP32 peak is that of the architecture: twice as much is a sparse peak. Gaming chips
    # accumulate at half rate, so that their professional sisters look the same: for those it is a doubt.
    for name in ("bf16_tflops", "fp16_tflops", "fp8_tflops", "int8_tflops", "tf32_tflops"):
        ratios = [peer[name] / peer["fp32_tflops"] for peer in peers if peer.get(name) and peer.get("fp32_tflops")]
        if not row.get(name) or not row.get("fp32_tflops") or not ratios:
            continue
        ratio = row[name] / row["fp32_tflops"] / max(ratios)
        if 1.7 < ratio < 2.4:  # clocks of sisters differ by some 15 %
            ratio_text = f"{row[name]:g} is {ratio:.2g} × the dense peak of its architecture, held against FP32"
            doubt = not str(row["memory_type"]).startswith("HBM")
            yield Finding(number, name, f"{ratio_text}: is it the sparse peak?", doubt)
    # an NVLink of one generation is as fast on each chip of an architecture: twice as much is both directions
    generation = re.match(r"NVLink\d", str(row["scaleup_link"]))
    links = [
        peer["scaleup_gb_per_s"] for peer in peers if generation and str(peer["scaleup_link"]).startswith(generation[0])
    ]
    if any(links) and 1.9 < row["scaleup_gb_per_s"] / max(links) < 2.1:
        link_text = f"{row['scaleup_gb_per_s']:g} is twice the link of its architecture"
        yield Finding(number, "scaleup_gb_per_s", f"{link_text}: is it the sum of both directions?")
    if row["memory_gib"] > row["memory_marketed_gb"] * 1.001:  # 80 GB as marketed are at most 80 GiB
        reason = f"{row['memory_gib']:g} GiB usable exceeds {row['memory_marketed_gb']:g} GB as marketed"
        yield Finding(number, "memory_gib", reason)
    # a narrower format is as fast at least; 1 % of rounding
    for small, large in (("bf16_tflops", "fp8_tflops"), ("fp8_tflops", "fp4_tflops"), ("tf32_tflops", "bf16_tflops")):
        if row.get(small) and row.get(large) and row[large] < row[small] * 0.99:
            reason = f"{row[large]:g} is below {small} = {row[small]:g}; narrower formats are never slower"
            yield Finding(number, large, reason)


# --- What the rows of one table owe to others: keys, descriptions, grids and names, easily forgotten with a new row.
#
# A file may be right by itself and the collection still lack something; here each lack is said with what to add
# where.


class _Placed(NamedTuple):
    """A row with its file and its number in it."""

    file: Path
    number: int
    row: Mapping[str, Any]


class _Lack(NamedTuple):
    """What a row lacks elsewhere; a doubt is said aloud and accepted."""

    place: _Placed
    column: str
    reason: str
    doubt: bool = False


_Tables = Mapping[str, Sequence[_Placed]]


def _lacks(tables: _Tables) -> Iterator[_Lack]:
    """Yield what the rows of a whole collection owe one another."""
    # keys that another file of the table has already; within one file they are faults of the file
    for name, rows in tables.items():
        key = TABLES[name].key
        first: dict[tuple[Any, ...], _Placed] = {}
        for placed in rows:
            earlier = first.setdefault(tuple(placed.row[column] for column in key), placed)
            if earlier.file != placed.file:
                place = f"{earlier.file.name}, row {earlier.number}"
                yield _Lack(placed, key[0], f"the same {', '.join(key)} as in {place}; drop one of them")

    # regions of which nobody says whose electricity they run on; each is named once
    regions = {(placed.row["provider"], placed.row["region"]) for placed in tables.get("cloud_regions", ())}
    for placed in tables.get("offers", ()):
        provider, region = placed.row["provider"], placed.row["region"]
        if region and not regions & {(provider, region), ("any", region)}:
            regions.add((provider, region))
            reason = f"{region!r} of {provider} is not in pricing/cloud_regions.csv; add its grid"
            yield _Lack(placed, "region", reason)

    # aliases of what no table has
    ids = {
        "accelerator": _values(tables, "accelerators", "id"),
        "flagship": _values(tables, "accelerators", "id"),
        "system": _values(tables, "systems", "id"),
        "model": _values(tables, "llms", "id"),
        "provider": _values(tables, "providers", "provider"),
        "region": _values(tables, "cloud_regions", "region"),
        "option": set(OPTIONS),
    }
    for placed in tables.get("aliases", ()):
        kind, alias, id_ = (placed.row[column] for column in ("kind", "alias", "id"))
        if id_ not in ids[kind]:
            yield _Lack(placed, "id", f"{id_!r} is no {kind} that the tables know")
        if alias != alias.lower():
            yield _Lack(placed, "alias", f"{alias!r} is compared in lower case; write {alias.lower()!r}")

    # sources that no row names: a doubt, for a source may be written down before its rows
    for name in ("price_sources", "model_sources"):
        folder = TABLES[name].files.split("/")[0]
        used = set()
        for table, rows in tables.items():
            if TABLES[table].files.startswith(folder) and table != name:
                used |= {placed.row.get(column) for column in ("source_id", "second_source_id") for placed in rows}
        for placed in tables.get(name, ()):
            if placed.row["source_id"] not in used:
                yield _Lack(placed, "source_id", "no row names this source yet", doubt=True)


def _values(tables: _Tables, name: str, column: str) -> set[Any]:
    return {placed.row[column] for placed in tables.get(name, ())}


# --- Checking a whole data folder: every file of every table, each against the others.


class Report(Struct):
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

    def take(self, path: Path, findings: Iterable[Finding], root: Path | None = None) -> None:
        """Take in what was found in the rows of a file."""
        for row, column, reason, doubt in findings:
            self.add(Fault(str(path), row, column, reason), root, doubt)


def check_folder(root: Path) -> Report:
    """Check every file of every table of a data folder, each against the others."""
    report = Report()
    checked: dict[str, list[_Placed]] = {}
    for table in TABLES.values():
        for path in table_files(root, table):
            rows, faults = check_file(table, path)
            report.files, report.rows = report.files + 1, report.rows + len(rows)
            for fault in faults:
                report.add(fault, root)
            # shipped files hold the schema's columns in its order, so that they load without being sniffed
            header, names = read_cells(path)[0][1], list(table.names)
            if header != names:
                rule = "shipped files hold every column"
                if set(header) == set(names):
                    rule = "the columns of shipped files stand in the schema's order"
                report.add(Fault(str(path), 1, None, f"{rule} of {table.name}: {', '.join(names)}"), root)
            if not faults:
                places = zip(line_numbers(path), rows, strict=True)
                checked.setdefault(table.name, []).extend(_Placed(path, number, row) for number, row in places)
    reference_rows = reference(lambda name: [placed.row for placed in checked.get(name, ())], clock.today())
    store = Store(root)
    # prices of all files are judged as one table, in which a number says file and row
    files = {item.file: file_number for file_number, item in enumerate(checked.get("offers", ()))}
    numbers = [(files[item.file] * FILE_STEP + item.number, item.row) for item in checked.get("offers", ())]
    prices = load_prices(store, "prices", numbers)
    paths = {file_number: path for path, file_number in files.items()}
    for finding in check_prices(store, prices, prices, reference_rows):
        file_number, row = divmod(finding.row, FILE_STEP)
        report.take(paths[file_number], [finding._replace(row=row)], root)
    for name, placed in checked.items():
        for path, group in groupby(placed, key=lambda placed_row: placed_row.file):
            if name != "offers":
                report.take(
                    path, check_rows(TABLES[name], [(item.number, item.row) for item in group], reference_rows), root
                )
    for lack in _lacks(checked):
        report.add(Fault(str(lack.place.file), lack.place.number, lack.column, lack.reason), root, lack.doubt)
    return report


def line_numbers(path: Path) -> list[int]:
    """Return the line on which each row of a file stands."""
    return [number for number, _ in read_cells(path)[1:]]
