"""From what lists say of where a machine is sold to rows of the table `availability`, judged like prices.

A row of a list names one machine in one zone or region. Rows of one list, machine and region become one. What cannot be
read is left out, a machine or a region that nobody knows is kept apart, and a machine that a list suddenly has in less
than half of its regions is held back, with what the list said before in its place, until `--accept`. A list that names
less than 70 % of what it named before says nothing.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from gpucost.catalog.loader import file_name
from gpucost.errors import CheckFailedError
from gpucost.refresh.complete import load
from gpucost.refresh.integrity import LEAST_COVERAGE, CandidateVerdict, count_unknown, keep_unknown
from gpucost.refresh.known import Known
from gpucost.refresh.source import SALES, Desk
from gpucost.schemas import DUCKDB_TYPES, TABLES

CHIPS = {  # as Google names the series of a chip -> the beginnings of the names of its machines
    "B200": ("a4-highgpu",),
    "GB200": ("a4x-highgpu",),
    "GB300": ("a4x-maxgpu",),
    "H100": ("a3-highgpu", "a3-megagpu"),
    "H200": ("a3-ultragpu",),
    "RTX PRO 6000": ("g4-standard",),
}
# tpu-v5litepod-8 is sold by the chip, as `TPU v5e chip`
TPU = re.compile(r"tpu-(v\d\w*?)(litepod)?-\d+")
_KEPT_REGIONS = 0.5  # of the regions that a list named for a machine; with fewer it is held back
_FEW_REGIONS, _FEW_ROWS = 4, 20  # below, shares mean nothing
_EXAMPLES = 3
# of a seller, a list, a machine or a region: no control characters, which a terminal would obey
_NAME = re.compile(r"[^\x00-\x1f\x7f]{2,80}")
_COLUMNS = {column.name: DUCKDB_TYPES[column.kind] for column in TABLES["availability"].columns}

Row = dict[str, Any]
Place = tuple[str, str]  # machine and region
_ListName = tuple[str, str]  # provider and list


def machines_of(name: str) -> tuple[str, ...]:
    """Return the products of the prices that a name of a list means; none for the chip of a machine that is listed.

    >>> machines_of("tpu-v5litepod-8"), machines_of("p5.48xlarge"), machines_of("accelerator H100x1")
    (('TPU v5e chip',), ('p5.48xlarge',), ())
    """
    if chip := re.fullmatch(r"gpu (.+?) \(.*\)", name):
        return CHIPS.get(chip[1], ())
    if tpu := TPU.fullmatch(name):
        return (f"TPU {tpu[1]}{'e' if tpu[2] else ''} chip",)
    return () if name.startswith("accelerator ") else (name,)


def judge_sales(
    desk: Desk, known: Known, earlier: Path | None, earlier_unknown: Path | None, accept: bool
) -> CandidateVerdict:
    """Make the table `part` of what is sold where, with the same kind of verdict as prices get."""
    verdict = CandidateVerdict()
    listed = _rows_of_lists(desk, verdict)
    # what each list said last, whether that was shipped or is in the store: of its versions the newest
    refreshed = list(_rows(desk, f"SELECT * FROM read_parquet({file_name(earlier)})")) if earlier is not None else []
    versions: dict[_ListName, dict[str, dict[Place, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in (*known.sales, *refreshed):
        versions[row["provider"], row["list"]][row["source_id"]][row["machine"], row["region"]] = dict(row)
    before = {name: max(by_source.values(), key=_newest_day) for name, by_source in versions.items()}
    _keep_apart(desk, known, listed, earlier_unknown)
    part: list[Row] = []
    for name, rows in listed.items():
        part += _publishable(desk, verdict, name, rows, before.get(name, {}), accept)
    if not part:
        reasons = "; ".join(desk.failures) or "; ".join(f"{count:,} {why}" for why, count in verdict.left_out.items())
        raise CheckFailedError(f"none of its rows says where a known machine is sold ({reasons or 'it is empty'}).")
    # of a list that could not be read this time its last word stays
    lists_read = {(row["provider"], row["list"]) for row in part}
    for row in refreshed:
        if (row["provider"], row["list"]) not in lists_read:
            part.append({**row, "source_id": desk.source_id})
    part.sort(key=lambda row: (row["provider"], row["list"], row["machine"], row["region"]))
    load(desk, "part", _COLUMNS, [tuple(row[name] for name in _COLUMNS) for row in part])
    verdict.rows = len(part)
    count_unknown(desk, verdict)
    return verdict


def _rows_of_lists(desk: Desk, verdict: CandidateVerdict) -> dict[_ListName, dict[Place, Row]]:
    """Return a row per list, machine and region; what cannot be read is counted."""
    # zones of a region are one: which of them has the machine is only shown
    zones: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in _rows(desk, f"SELECT {', '.join(SALES)} FROM sales"):
        cells = [row[name] for name in ("provider", "list", "machine", "region", "evidence")]
        if not all(isinstance(cell, str) and _NAME.fullmatch(cell) for cell in cells):
            verdict.left_out["unreadable name"] = verdict.left_out.get("unreadable name", 0) + 1
            continue
        for machine in machines_of(row["machine"]):
            zones[row["provider"], row["list"], machine, row["region"], row["evidence"]].append(row)
    listed: dict[_ListName, dict[Place, Row]] = defaultdict(dict)
    for (provider, name, machine, region, evidence), rows in zones.items():
        days = [row["observed_on"] for row in rows if row["observed_on"]]
        listed[provider, name][machine, region] = {
            "provider": provider,
            "machine": machine,
            "region": region,
            "zones": " ".join(sorted({row["zone"] for row in rows if row["zone"]})) or None,
            "on_demand": _either(row["on_demand"] for row in rows),
            "spot": _either(row["spot"] for row in rows),
            "list": name,
            "evidence": evidence,
            "observed_on": min(max(days, default=desk.today), desk.today),  # a list may be dated ahead of us
        }
    return listed


def _newest_day(rows: Mapping[Place, Row]) -> date:
    """Return the day on which the newest of some rows was seen; the first of all days where none says."""
    return max(row["observed_on"] or date.min for row in rows.values())


def _either(marks: Iterable[bool | None]) -> bool | None:
    """Return whether some zone has it; None where the list does not say."""
    known_marks = {mark for mark in marks if mark is not None}
    return any(known_marks) if known_marks else None


def _keep_apart(
    desk: Desk, known: Known, listed: Mapping[_ListName, dict[Place, Row]], earlier_unknown: Path | None
) -> None:
    """Take out of the lists machines without a price and regions that nobody knows; they wait in the table `apart`."""
    sellers = {provider for provider, _ in known.sold}
    apart: dict[tuple[str, str, str | None], str] = {}
    for (provider, _), rows in listed.items():
        names = {name for seller, name in known.sold if seller == provider}
        for machine, region in list(rows):
            if rows[machine, region]["evidence"] == "chips":  # of which the list names the series alone
                is_priced = any(name.startswith(machine.lower()) for name in names)
            else:
                is_priced = machine.lower() in names
            # where no price of a seller is known at all, a machine is not suspect for want of one
            if provider in sellers and not is_priced:
                apart[provider, machine, None] = "machine without a price"
                del rows[machine, region]
            elif (provider, region) not in known.regions:
                apart[provider, machine, region] = "a region that is not known"
                del rows[machine, region]
    columns = {"provider": "VARCHAR", "description": "VARCHAR", "region": "VARCHAR", "option": "VARCHAR"}
    columns |= {"usd_per_hour": "DOUBLE", "reason": "VARCHAR"}
    load(desk, "unread", columns, [(*key, None, None, reason) for key, reason in apart.items()])
    # `keep_unknown` looks in it for the day of the last list: there is none here, so that yesterday counts
    desk.connection.execute("CREATE OR REPLACE TABLE earlier (observed_on DATE)")
    keep_unknown(desk, "SELECT * FROM unread", earlier_unknown)


def _publishable(
    desk: Desk,
    verdict: CandidateVerdict,
    name: _ListName,
    rows: dict[Place, Row],
    before: Mapping[Place, Row],
    accept: bool,
) -> Sequence[Row]:
    """Return the rows of a list that are to be published, and count them in the verdict.

    A list that lost too much says nothing: the caller keeps what it said before.
    """
    if not rows:
        return ()
    if len(before) >= _FEW_ROWS and len(rows) < LEAST_COVERAGE * len(before) and not accept:
        desk.failures.append(
            f"{name[1]}: it names {len(rows):,} machines in regions where it named {len(before):,} before; --accept"
            " publishes them nevertheless"
        )
        return ()
    regions_by_machine = _regions(rows)
    # rows that stand for those before are published by this refresh too
    origin = {"source_id": desk.source_id}
    published = {place: {**row, **origin} for place, row in rows.items()}
    for machine, earlier_regions in _regions(before).items():
        # a machine that is listed nowhere any more is withdrawn; of a few regions half may well go
        if machine not in regions_by_machine or len(earlier_regions) < _FEW_REGIONS or accept:
            continue
        regions = regions_by_machine[machine]
        if len(regions & earlier_regions) < _KEPT_REGIONS * len(earlier_regions):
            reason = "sold in less than half of its regions"
            verdict.held[reason] = verdict.held.get(reason, 0) + 1
            shown = verdict.examples.setdefault(reason, [])
            if len(shown) < _EXAMPLES:
                shown.append(f"{name[0]} {machine} {len(earlier_regions)} to {len(regions)}")
            for region in regions:
                del published[machine, region]
            for region in earlier_regions:
                published[machine, region] = {**before[machine, region], **origin}
    marks, both = ("on_demand", "spot", "zones"), published.keys() & before.keys()
    changed = sum(any(published[key][mark] != before[key].get(mark) for mark in marks) for key in both)
    verdict.new += len(published.keys() - before.keys())
    verdict.gone += len(before.keys() - published.keys())
    verdict.changed += changed
    verdict.same += len(both) - changed
    return list(published.values())


def _regions(rows: Iterable[Place]) -> dict[str, set[str]]:
    """Return the regions of each machine."""
    regions: dict[str, set[str]] = defaultdict(set)
    for machine, region in rows:
        regions[machine].add(region)
    return regions


def _rows(desk: Desk, sql: str) -> Iterator[Row]:
    cursor = desk.connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    yield from (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
