"""Shapes lists of which machine is sold where into pricing/availability.csv: `python -m benchmarks.availability RAW`.

RAW is a CSV file with the columns provider, machine, region, zone, on_demand and spot (y, n or empty where the list
does not say), observed_on (empty where the list is undated) and source: one row is the word of one list on one zone. A
row of the table is the word of one list on one region. A list of chips by region becomes rows of the beginnings of
their machines' names; sizes of a TPU become the chip that is priced. A new list takes a line in `LISTS`.
"""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gpucost.refresh.sales import machines_of
from gpucost.schemas import TABLES

ROOT = Path(__file__).parents[1]


class Listing(NamedTuple):
    """A list: its name, by which a newer version replaces it, what it proves, and its key in pricing/sources.csv."""

    name: str
    evidence: str  # machines | chips | prices
    source_id: str


LISTS = {  # provider and repository
    ("gcp", "anycloud-sh/catalog"): Listing("anycloud-gcp", "machines", "anycloud-sh-catalog-gcp-zones-2026-05-20"),
    ("gcp", "koen-nebius/price-monitor"): Listing(
        "gcp-gpu-regions", "chips", "koen-nebius-price-monitor-gcp-gpu-regions-2026-08-12"
    ),
    ("gcp", "cloudpilot-ai/karpenter-provider-gcp"): Listing(
        "karpenter-gcp", "machines", "karpenter-provider-gcp-regions-2026-08-03"
    ),
    ("azure", "Azure/karpenter-provider-azure"): Listing(
        "karpenter-azure", "prices", "karpenter-provider-azure-price-tables"
    ),
    ("azure", "anycloud-sh/catalog"): Listing(
        "anycloud-azure", "prices", "anycloud-sh-catalog-azure-regions-2026-05-20"
    ),
    ("aws", "skypilot-org/skypilot-catalog"): Listing(
        "skypilot-aws", "machines", "skypilot-catalog-built-from-provider-price-lists"
    ),
    ("aws", "tsaol/aws-gpu"): Listing("vantage-aws", "prices", "tsaol-aws-gpu-2026-01-21"),
    ("aws", "romilbhardwaj/skypilot-catalog"): Listing(
        "skypilot-aws-2024", "machines", "romilbhardwaj-skypilot-catalog-price-history"
    ),
    ("aws", "alexei-led/spotinfo"): Listing(
        "aws-spot-advisor", "machines", "alexei-led-spotinfo-aws-spot-advisor-data-at-5eedf20"
    ),
    ("aws", "aws/karpenter-provider-aws"): Listing("karpenter-aws", "prices", "karpenter-provider-aws-price-tables"),
}


def shaped(rows: Iterable[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """Yield a row per list, machine and region, in the order of the table."""
    zones_of: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        listing = LISTS[row["provider"], row["source"].removeprefix("github:").split()[0]]
        for machine in machines_of(row["machine"]):
            word = listing.source_id, listing.evidence, row["observed_on"], listing.name
            zones_of[row["provider"], machine, row["region"], *word].append(row)
    for (provider, machine, region, source_id, evidence, observed_on, name), zones in sorted(zones_of.items()):
        # a remark in brackets stands where some lists have no zone
        names = sorted({row["zone"] for row in zones if row["zone"] and "(" not in row["zone"]})
        yield {
            "provider": provider, "machine": machine, "region": region, "zones": " ".join(names),
            "on_demand": _either(row["on_demand"] for row in zones), "spot": _either(row["spot"] for row in zones),
            "list": name, "evidence": evidence, "observed_on": observed_on, "source_id": source_id,
        }  # fmt: skip


def _either(marks: Iterable[str]) -> str:
    """Return 1 where some zone has it, 0 where none has, empty where the list does not say."""
    of_zones = set(marks)
    if "y" in of_zones:
        return "1"
    return "0" if "n" in of_zones else ""


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path)
    with parser.parse_args().raw.open(encoding="utf-8", newline="") as file:
        rows = list(shaped(csv.DictReader(file)))
    target = ROOT / TABLES["availability"].files
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, TABLES["availability"].names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    sys.stderr.write(f"{len(rows)} rows\n")


if __name__ == "__main__":
    main()
