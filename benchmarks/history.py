"""Shapes dated change points of public catalogues into pricing/history: `python -m benchmarks.history RAW [--write]`.

RAW is a folder of gzipped CSV files, read out of the git history of a catalogue. A row says what a machine cost in a
region from `observed_on` on, in USD per hour of the machine. An empty cell is unknown; columns beyond these are not
read:

    *_history.csv.gz      observed_on cloud instance region event, and prices: on_demand spot cud_1y cud_3y;
                          where the source names them: gpu gpus gpu_mib. Event: first, change, gone or spot.
    *_spot_daily.csv.gz   observed_on cloud instance gpu gpus region spot_min spot_max: lowest and highest zone

The first word of a file's name is its source. What is no price, no accelerator of the catalog or a known fault is left
out and counted by reason in pricing/history_drops.csv; of a series only the days stay on which its price moved, a daily
series by a hundredth and more. A new source takes a line in `SOURCES`, a fault that is found one in `FAULTS`; the files
of pricing/history are written anew, except lists that were made by hand.
"""

import argparse
import csv
import gzip
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from gpucost.catalog import open_catalog
from gpucost.refresh.known import Known, chip_of, known_of
from gpucost.schemas import HISTORY

ROOT = Path(__file__).parents[1]
SOURCES = {  # first word of a file, and cloud where the source is one per cloud -> source_id
    "karpenter": "karpenter-provider-{cloud}-price-tables",
    "cyclenerd": "cyclenerd-google-cloud-price-history",
    "skypilot": "romilbhardwaj-skypilot-catalog-price-history",
}
# names of clouds that the catalog writes otherwise
SELLERS = {"ovhcloud": "ovh"}
V100, V100_32, H100 = "v100-pcie-16gb|v100-sxm2-16gb", "v100-pcie-32gb|v100-sxm2-32gb", "h100-pcie-80gb|h100-sxm5-80gb"
NAMED = {  # cloud or "", and name of a chip -> what it is, where the name alone says less
    ("oci", "V100"): "v100-sxm2-16gb", ("oci", "P100"): "p100-sxm2-16gb", ("azure", "P100"): "p100-pcie-16gb",
    ("", "V100"): V100, ("", "V100-32GB"): V100_32, ("", "H100"): H100,
}  # fmt: skip
PARTS = re.compile(r"Standard_NV(4|6|8|12|16|18|24)a.*_v\d|.*_Promo")  # machines with a part of a chip, or half-priced
DAILY = ("skypilot",)  # sources whose spot prices are in their daily series
_SMALLEST_STEP = 0.01  # of a daily series
# column of prices -> option, and months of its term
OPTIONS = {
    "on_demand": ("on_demand", 0),
    "spot": ("spot", 0),
    "cud_1y": ("commitment", 12),
    "cud_3y": ("commitment", 36),
}
ONE_LIST = frozenset(("lambda",))  # sells at one price in every region
_MIB_PER_GIB = 1024


class Point(NamedTuple):
    """A price of a machine from a day on; no price where it is gone."""

    source_id: str
    provider: str
    instance_type: str
    gpu: str
    gpus: int
    region: str
    option: str
    term_months: int
    observed_on: str
    usd: float | None
    usd_high: float | None
    daily: bool


Row = dict[str, str]
Machines = dict[tuple[str, str], tuple[str, int]]  # seller and machine -> accelerator and their count
FAULTS: dict[str, Callable[[Row, str], bool]] = {
    "versions of 2023-02-01 to 2023-09-17 hold wrong prices of GPU instances": lambda row, source: (
        source == "karpenter-provider-aws-price-tables" and "2023-02-01" <= row["observed_on"] <= "2023-09-17"
    ),
    "a GPU without its host: the price of an accelerator, not of an instance": lambda row, source: (
        source == SOURCES["skypilot"] and row["cloud"] == "gcp"
    ),
    "a spot step that the daily series tells too": lambda row, source: row.get("event") == "spot",
}
_PRICE_FAULTS: dict[str, Callable[[str, Row], bool]] = {  # of one price of a row; it ends what was known before
    "commitments for a2-ultragpu from 2022-10-06 on are wrong": lambda name, row: (
        name.startswith("cud") and row["instance"].startswith("a2-ultragpu") and row["observed_on"] >= "2022-10-06"
    ),
    "a3-megagpu-8g on 2024-08-17: 10.12 in us-central1, and the like elsewhere, is not its price": lambda name, row: (
        (row["instance"], row["observed_on"]) == ("a3-megagpu-8g", "2024-08-17") and float(row["on_demand"]) < 20
    ),
}
NO_CHIP, NO_PRICE = "no accelerator of the catalog, or a fraction of one", "no price, or zero"
_SMALL_STEP = "a daily step of spot below 1 %"


class Chips:
    """Which accelerators a machine holds: as the catalog knows, as some source says, by a chip's name."""

    def __init__(self, known: Known, machines: Machines, rows: Iterable[Row]) -> None:
        self._known = known
        self._machines = {**machines, **{(seller, name): (gpu, n) for seller, name, gpu, n, _ in known.products}}
        self._chips: dict[tuple[str, str, str], str | None] = {}
        for row in rows:
            key = row["cloud"], row["instance"].lower()
            if row.get("gpu") and row["instance"] and key not in self._machines and (chip := self._by_chip(row)):
                self._machines[key] = chip

    def of(self, row: Row) -> tuple[str, int] | None:
        """Return the accelerator and their count, or None."""
        if PARTS.fullmatch(row["instance"]):
            return None
        return self._machines.get((row["cloud"], row["instance"].lower())) or self._by_chip(row)

    def _by_chip(self, row: Row) -> tuple[str, int] | None:
        name, gpus = row.get("gpu") or "", float(row.get("gpus") or 0)
        key = row["cloud"], name, row.get("gpu_mib") or ""
        if not name or gpus < 1 or gpus % 1:
            return None
        if key not in self._chips:
            # a cloud's own meaning of a name before everybody's, and either before what the catalog would guess
            chip = NAMED.get(key[:2]) or NAMED.get(("", name))
            self._chips[key] = chip or chip_of(self._known, name, float(key[2]) / _MIB_PER_GIB if key[2] else None)
        gpu = self._chips[key]
        return (gpu, int(gpus)) if gpu else None


def shaped(folder: Path, known: Known, machines: Machines) -> tuple[list[list[object]], Counter[tuple[str, str]]]:
    """Return the rows of pricing/history for a folder of raw files, and what was left out by source and reason."""
    drops: Counter[tuple[str, str]] = Counter()
    files: dict[str, list[Row]] = {}
    for file in sorted(folder.glob("*.csv.gz")):
        with gzip.open(file, "rt", newline="", encoding="utf-8") as lines:
            rows = csv.DictReader(lines)
            files[file.name] = [{**row, "cloud": SELLERS.get(row["cloud"], row["cloud"])} for row in rows]
    chips = Chips(known, machines, (row for rows in files.values() for row in rows))
    points = [point for name, rows in files.items() for row in rows for point in _points(row, name, chips, drops)]
    points.sort(key=itemgetter(*range(9)))  # stable: of one day the last row speaks
    # a series is all fields of a point before its day
    moves = [row for _, series in groupby(points, itemgetter(*range(8))) for row in _moves(list(series), drops)]
    return sorted(moves, key=itemgetter(*range(7), 11, 9)), drops


def _points(row: Row, file: str, chips: Chips, drops: Counter[tuple[str, str]]) -> Iterator[Point]:
    """Yield the prices of a raw row; what is none is counted."""
    word = file.split("_")[0]
    source, daily = SOURCES[word].format(cloud=row["cloud"]), file.endswith("_spot_daily.csv.gz")
    chip = chips.of(row)
    prices = {"spot": row["spot_min"]} if daily else {name: row[name] for name in OPTIONS if name in row}
    if word in DAILY and not daily:
        del prices["spot"]
    # the first reason alone is counted, a known fault before what anybody sees
    reasons = [reason for reason, is_fault in FAULTS.items() if is_fault(row, source)]
    if chip is None:
        reasons.append(NO_CHIP)
    if not any(float(price or 0) > 0 for price in prices.values()):
        reasons.append(NO_PRICE)
    if reasons or chip is None:
        drops[source, reasons[0]] += 1
        return
    # the dearest zone, where zones differ; a region of one price has no second one
    high = row.get("spot_max") if daily and row["spot_max"] != row["spot_min"] else None
    region = "" if row["cloud"] in ONE_LIST else row["region"]
    for name, price in prices.items():
        option, term = OPTIONS[name]
        # RunPod sells on demand in its secure cloud and in its community cloud
        if row["cloud"] == "runpod" and option == "on_demand":
            option = "secure" if row["instance"].endswith("_SECURE") else "community"
        usd = float(price) if price and float(price) > 0 and row.get("event") != "gone" else None
        if usd and (fault := next((reason for reason, is_fault in _PRICE_FAULTS.items() if is_fault(name, row)), None)):
            drops[source, fault] += 1
            usd = None
        yield Point(source, row["cloud"], row["instance"], *chip, region, option, term, row["observed_on"], usd,
                    float(high) if high else None, daily)  # fmt: skip


def _moves(series: Sequence[Point], drops: Counter[tuple[str, str]]) -> Iterator[list[object]]:
    """Yield a row for each day on which a price moved."""
    last: Point | None = None
    for _, group in groupby(series, itemgetter(8)):
        *_, point = group
        if last is None or last.usd is None:
            if point.usd is None:  # gone already
                continue
        elif point.usd is not None:
            # against the last one that was written: many small steps add up to one
            pairs = (last.usd, point.usd), (last.usd_high or last.usd, point.usd_high or point.usd)
            least = _SMALLEST_STEP if point.daily else 1e-9
            if not any(abs(now / then - 1) >= least for then, now in pairs if now and then):
                if point.daily:
                    drops[point.source_id, _SMALL_STEP] += 1
                continue
        event = "first" if last is None else "change"
        if point.usd is None:
            event = "gone"
        last = point
        yield [point.provider, point.instance_type, point.gpu, point.gpus, point.region, point.option,
               point.term_months, point.usd, point.usd_high, point.observed_on, event, point.source_id]  # fmt: skip


def written(rows: Iterable[list[object]], folder: Path) -> None:
    """Write the rows by seller; spot prices of sellers with many have a file of their own."""
    files = defaultdict(list)
    for row in rows:
        spot = row[5] == "spot" and row[0] != "gcp"
        files[f"{row[0]}-spot.csv" if spot else f"{row[0]}.csv"].append(row)

    for name, moves in files.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(HISTORY.names)
            writer.writerows([f"{value:.8g}" if isinstance(value, float) else value for value in row] for row in moves)


def main() -> int:
    """Shape a folder and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path)
    parser.add_argument("--write", type=Path, nargs="?", const=ROOT / "pricing", help="the folder above history/")
    options = parser.parse_args()
    catalog = open_catalog()
    # what earlier files named: a machine that a new file does not describe is known from them
    query = "SELECT DISTINCT provider, lower(instance_type) AS machine, gpu, gpus FROM price_history"
    machines = {
        (row["provider"], row["machine"]): (row["gpu"], row["gpus"]) for row in catalog.query(query, "price_history")
    }
    rows, drops = shaped(options.raw, known_of(catalog), machines)
    print(f"{len(rows):,} change points of {len({row[0] for row in rows})} sellers; left out:")
    for (source, reason), count in sorted(drops.items()):
        print(f"  {count:>7,} {source}: {reason}")
    if options.write:
        (options.write / "history").mkdir(parents=True, exist_ok=True)
        written(rows, options.write / "history")
        with (options.write / "history_drops.csv").open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(("source_id", "reason", "rows"))
            writer.writerows((*key, count) for key, count in sorted(drops.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
