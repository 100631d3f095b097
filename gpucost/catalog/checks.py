"""What is wrong with well-formed rows: references, dates, arithmetic, known faults of price lists; whole folders."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from gpucost.catalog.loader import table_files
from gpucost.catalog.records import OWN_SOURCE
from gpucost.options import OPTIONS, is_plain
from gpucost.schemas import TABLES, Table
from gpucost.schemas.validation import Fault, check_file, read_cells
from gpucost.units import HOURS_PER_MONTH

# --- What is wrong with rows that are well-formed: references, dates, arithmetic, and the known faults of price
# lists.

Rows = Sequence[Mapping[str, Any]]

ANNOUNCED_DAYS = 400  # a price may be announced this long before it holds
_FAR_RATIO, _IMPOSSIBLE_RATIO = 5.0, 20.0
_NEAR = 0.35  # a ratio within this share of 730 or of a node's GPUs is taken for a slip of units
_AROUND_DAYS, _ENOUGH = 365, 5  # a median is taken over this many prices at least, seen within a year
_SAME_PRICE = 0.005  # usd_per_gpu_hour may differ by rounding from usd_per_hour ÷ gpus


class Finding(NamedTuple):
    """A row's fault (refused) or doubt (said aloud)."""

    row: int
    column: str
    reason: str
    doubt: bool = False


class Reference(NamedTuple):
    """What rows are held against: known keys, accelerators by id, and median prices by GPU and market."""

    keys: Mapping[str, frozenset[str]]  # table -> its keys
    accelerators: Mapping[str, Mapping[str, Any]]
    prices: Mapping[tuple[str, bool], tuple["Level", ...]]  # (gpu, is spot) -> what its GPU-hour usually costs
    today: date


class Level:
    """What a GPU-hour usually costs in one market: the median over the prices seen within a year of a month."""

    def __init__(self, seen: Iterable[tuple[date, float]]) -> None:
        self._seen = sorted(seen)
        self._days = [day for day, _ in self._seen]
        self._medians: dict[tuple[int, int], float | None] = {}

    def around(self, day: date) -> float | None:
        """Return the median around the month of a day, or None where too few prices are known."""
        month = (day.year, day.month)
        if month not in self._medians:
            middle = day.replace(day=15).toordinal()
            first = bisect_left(self._days, middle - _AROUND_DAYS, key=date.toordinal)
            last = bisect_right(self._days, middle + _AROUND_DAYS, key=date.toordinal)
            prices = [price for _, price in self._seen[first:last]]
            self._medians[month] = median(prices) if len(prices) >= _ENOUGH else None
        return self._medians[month]


def _levels(seen: Mapping[tuple[str, str, date], Sequence[float]]) -> tuple[Level, Level]:
    """Return what is usual over every price, and over machines: the list of one seller may name twenty regions."""
    return (
        Level((day, price) for (_, _, day), regions in seen.items() for price in regions),
        Level((day, median(regions)) for (_, _, day), regions in seen.items()),
    )


def reference(rows_of: Callable[[str], Rows], today: date) -> Reference:
    """Gather what rows are held against from a catalog's tables."""
    keys = {
        name: frozenset(str(row[TABLES[name].key[0]]) for row in rows_of(name))
        for name in TABLES
        if len(TABLES[name].key) == 1
    }
    prices: dict[tuple[str, bool], dict[tuple[str, str, date], list[float]]] = {}
    for row in rows_of("offers"):
        machine = (row["provider"], row["instance_type"], row["observed_on"])
        market = prices.setdefault((row["gpu"], _is_spot(row)), {})
        market.setdefault(machine, []).append(row["usd_per_gpu_hour"])
    newest = max((row["recorded_on"] for row in rows_of("offers")), default=today)
    levels = {market: _levels(seen) for market, seen in prices.items()}
    return Reference(keys, {row["id"]: row for row in rows_of("accelerators")}, levels, max(today, newest))


def _is_spot(row: Mapping[str, Any]) -> bool:
    return OPTIONS[row["option"]].family == "preemptible"


def check_rows(table: Table, rows: Sequence[tuple[int, Mapping[str, Any]]], known: Reference) -> Iterator[Finding]:
    """Yield what is wrong or odd about well-formed rows, each with its row number."""
    for number, row in rows:
        yield from (Finding(number, *found) for found in _references(table, row, known))
        yield from (Finding(number, *found) for found in _dates(table, row, known))
        yield from (Finding(number, *found) for found in _ranges(row))
        judge = _JUDGES.get(table.name)
        if judge:
            yield from (Finding(number, *found) for found in judge(row, known))
    if table.name == "offers":
        yield from _spot_above_demand(rows)
        yield from _contradictions(rows)


def _references(table: Table, row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str]]:
    for column in table.columns:
        value = row.get(column.name)
        if not column.refers_to or value is None:
            continue
        sources = "price_sources" if table.files.startswith("pricing") else "model_sources"
        target = sources if column.refers_to == "sources" else column.refers_to
        if value not in known.keys.get(target, frozenset()) and value != OWN_SOURCE:
            what = "add it to sources.csv" if column.refers_to == "sources" else f"add it to {TABLES[target].files}"
            yield column.name, f"{value!r} is not in {target}; {what}, or name one that is there"


def _dates(table: Table, row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str]]:
    for name in ("observed_on", "recorded_on", "accessed_on", "published_on"):
        value = row.get(name)
        if value is not None and value > known.today:
            yield name, f"{value} lies in the future"
    observed, recorded, valid = row.get("observed_on"), row.get("recorded_on"), row.get("valid_from")
    if observed and recorded and recorded < observed:
        yield "recorded_on", f"{recorded} lies before the observation on {observed}"
    if observed and valid and valid - observed > timedelta(days=ANNOUNCED_DAYS):
        yield "valid_from", f"{valid} lies more than {ANNOUNCED_DAYS} days after the observation on {observed}"


def _ranges(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    low, typical, high = row.get("low"), row.get("typical"), row.get("high")
    if typical is not None and ((low is not None and low > typical) or (high is not None and high < typical)):
        yield "typical", f"{typical:g} lies outside its range"


# --- offers


def _judge_offer(row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str] | tuple[str, str, bool]]:
    per_gpu = row["usd_per_hour"] / row["gpus"]
    if abs(per_gpu / row["usd_per_gpu_hour"] - 1) > _SAME_PRICE:
        yield "usd_per_gpu_hour", f"{row['usd_per_gpu_hour']:g} is not usd_per_hour ÷ gpus = {per_gpu:g}"
    gpus = str(row["gpu"]).split("|")
    for gpu in gpus:
        if gpu not in known.accelerators:
            yield "gpu", f"{gpu!r} is not in models/accelerators.csv; `gpucost gpus` lists the ids"
    if len(gpus) == 1:
        around = [level.around(row["observed_on"]) for level in known.prices.get((gpus[0], _is_spot(row)), ())]
        usual = [price for price in around if price]
        yield from _judge_level(row, min(usual, key=lambda price: _apart(row, price), default=None))
    yield from _judge_terms(row)


def _judge_terms(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Hold what a price says about its term, its payment, its order and its place against each other."""
    committed = OPTIONS[row["option"]].family == "committed"
    if committed and row["term_months"] == 0:
        yield "term_months", f"a {row['option']} price needs the length of its term"
    if not committed and row["term_months"] > 0:
        yield "term_months", f"a price {row['option']} has no term; write 0"
    if committed and (row["billing"] != "take_or_pay" or row["payment"] == "none"):
        column = "payment" if row["payment"] == "none" else "billing"
        yield column, f"a {row['option']} price is paid whether used or not: billing take_or_pay, and how it is paid"
    if row["upfront_usd"] and row["term_months"] == 0:
        yield "upfront_usd", "a price with upfront_usd needs term_months, over which it is spread"
    recurring = row["recurring_usd_per_hour"]
    if row["payment"] in ("no_upfront", "monthly") and recurring is not None and recurring != row["usd_per_hour"]:
        yield "recurring_usd_per_hour", f"{recurring:g} is not usd_per_hour, though nothing is paid at the start"
    least, most = row["minimum_units"], row["maximum_units"]
    if least is not None and most is not None and least > most:
        yield "minimum_units", f"{least} is more than maximum_units {most}: nothing can be ordered"
    regional = row["region_scope"] in ("region", "country", "continent")
    if bool(row["region"]) != regional:
        what = "needs a region" if regional else "has no region; leave the cell empty"
        yield "region", f"a price for the scope {row['region_scope']} {what}"


def _apart(row: Mapping[str, Any], usual: float) -> float:
    """Return how often a price contains another, or is contained in it."""
    ratio = float(row["usd_per_gpu_hour"]) / usual
    return max(ratio, 1 / ratio)


def _judge_level(row: Mapping[str, Any], usual: float | None) -> Iterator[tuple[str, str] | tuple[str, str, bool]]:
    """Hold a price against the median of its GPU in its market (spot, or not)."""
    if usual is None:
        return
    ratio = row["usd_per_gpu_hour"] / usual
    stated = f"{row['usd_per_gpu_hour']:g} USD per GPU-hour is {ratio:.3g} × the median of {usual:.3g}"
    if ratio > 1 and abs(ratio / HOURS_PER_MONTH - 1) < _NEAR:
        yield "usd_per_hour", f"{stated}: is it a price per month?"
    elif ratio < 1 and abs(ratio * HOURS_PER_MONTH - 1) < _NEAR:
        yield "usd_per_hour", f"{stated}: was an hourly price divided by 730 again?"
    elif ratio > _IMPOSSIBLE_RATIO or ratio < 1 / _IMPOSSIBLE_RATIO:
        yield "usd_per_hour", f"{stated}: check the unit, the GPU count and the currency"
    elif ratio > _FAR_RATIO and any(abs(ratio / count - 1) < _NEAR for count in (8, 16)):
        yield "gpus", f"{stated}: is it the price of a whole node? Write it in usd_per_hour, beside its gpus"
    elif ratio > _FAR_RATIO or ratio < 1 / _FAR_RATIO:
        yield "usd_per_hour", f"{stated}", True


def _spot_above_demand(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Find spot prices that are not below the on-demand price seen at the same place on the same day."""
    demand: dict[tuple[Any, ...], float] = {}
    for _, row in rows:
        if is_plain(row["option"]):
            place = _place(row)
            demand[place] = min(row["usd_per_gpu_hour"], demand.get(place, row["usd_per_gpu_hour"]))
    for number, row in rows:
        price = demand.get(_place(row))
        if _is_spot(row) and price is not None and row["usd_per_gpu_hour"] >= price:
            word = "equal to" if row["usd_per_gpu_hour"] == price else "above"
            reason = (
                f"the {row['option']} price is {word} the on-demand price of {price:g} USD per GPU-hour on that day"
            )
            yield Finding(number, "usd_per_hour", reason)


_place = itemgetter("provider", "instance_type", "gpu", "gpus", "region", "tier", "observed_on", "source_id")


_moment = itemgetter("offer_id", "observed_on", "recorded_on", "source_id")


def _contradictions(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Find rows that give one offer two prices at the same time from the same source."""
    seen: dict[tuple[Any, ...], tuple[int, float]] = {}
    for number, row in rows:
        key = (*_moment(row), row["valid_from"] or row["observed_on"])
        first, price = seen.setdefault(key, (number, row["usd_per_hour"]))
        if price != row["usd_per_hour"]:
            reason = f"{row['usd_per_hour']:g} contradicts {price:g} in row {first}: one offer, one day, one source"
            yield Finding(number, "usd_per_hour", reason)


# --- accelerators


def _judge_accelerator(row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str] | tuple[str, str, bool]]:
    alike = (other for other in known.accelerators.values() if other["architecture"] == row["architecture"])
    peers = [other for other in alike if other["id"] != row["id"]]
    yield from _sparse_as_dense(row, peers)
    yield from _both_directions(row, peers)
    if row["memory_gib"] > row["memory_marketed_gb"] * 1.001:
        yield "memory_gib", f"{row['memory_gib']:g} GiB usable exceeds {row['memory_marketed_gb']:g} GB as marketed"
    for small, large in (("bf16_tflops", "fp8_tflops"), ("fp8_tflops", "fp4_tflops"), ("tf32_tflops", "bf16_tflops")):
        if row.get(small) and row.get(large) and row[large] < row[small] * 0.99:
            yield large, f"{row[large]:g} is below {small} = {row[small]:g}; narrower formats are never slower"


def _sparse_as_dense(row: Mapping[str, Any], peers: Rows) -> Iterator[tuple[str, str, bool]]:
    """Compare the ratio of a peak to the FP32 peak with chips of the same architecture: twice theirs is a sparse peak.

    Gaming chips accumulate at half rate, so that their professional sisters look the same: for those it is a doubt.
    """
    for name in ("bf16_tflops", "fp16_tflops", "fp8_tflops", "int8_tflops", "tf32_tflops"):
        ratios = [peer[name] / peer["fp32_tflops"] for peer in peers if peer.get(name) and peer.get("fp32_tflops")]
        if not row.get(name) or not row.get("fp32_tflops") or not ratios:
            continue
        ratio = row[name] / row["fp32_tflops"] / max(ratios)
        if 1.7 < ratio < 2.4:
            said = f"{row[name]:g} is {ratio:.2g} × the dense peak of its architecture, held against FP32"
            yield name, f"{said}: is it the sparse peak?", not str(row["memory_type"]).startswith("HBM")


def _both_directions(row: Mapping[str, Any], peers: Rows) -> Iterator[tuple[str, str]]:
    """Compare an NVLink with chips of its architecture and generation: twice theirs is the sum of both directions."""
    generation = re.match(r"NVLink\d", str(row["scaleup_link"]))
    links = [
        peer["scaleup_gb_per_s"] for peer in peers if generation and str(peer["scaleup_link"]).startswith(generation[0])
    ]
    if any(links) and 1.9 < row["scaleup_gb_per_s"] / max(links) < 2.1:
        said = f"{row['scaleup_gb_per_s']:g} is twice the link of its architecture"
        yield "scaleup_gb_per_s", f"{said}: is it the sum of both directions?"


_JUDGES: dict[str, Callable[..., Iterator[Any]]] = {"offers": _judge_offer, "accelerators": _judge_accelerator}


# --- What the rows of one table owe to others: keys, descriptions, grids and names that a new row is easily added
# without.
#
# A file may be right by itself and the collection still lack something; here each lack is said with what to add
# where.


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
