"""Time and memory of the catalog: the shipped prices, and a synthetic price book of ten million rows in Parquet.

python -m benchmarks.catalog [--rows 10000000] [--json]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from gpucost.schemas import DUCKDB_TYPES, TABLES

DAY = "2026-06-30"


def write_book(folder: Path, rows: int, offers: int) -> None:
    """Write `rows` prices of `offers` offers, seen day by day, some recorded late and some valid from earlier."""
    import duckdb

    given = {
        "offer_id": f"'synthetic/' || (i % {offers})",
        "offer_kind": "'offer'",
        "provider": f"'provider-' || (i % {offers} % 97)",
        "instance_type": f"'type-' || (i % {offers})",
        "gpu": f"list_extract(['h100-sxm5-80gb', 'a100-sxm4-80gb', 'h200-sxm-141gb', 'b200-sxm'], 1 + i % {offers} % 4)",
        "gpu_assumed": "false",
        "gpus": "8",
        "region": f"'region-' || (i % {offers} % 23)",
        "region_scope": "'region'",
        "option": f"list_extract(['on_demand', 'spot'], 1 + i % {offers} % 2)",
        "billing": "'per_use'",
        "term_months": "0",
        "payment": "'none'",
        "usd_per_hour": "8 * (1 + (i * 7919 % 1000) / 200.0)",
        "usd_per_gpu_hour": "1 + (i * 7919 % 1000) / 200.0",
        "valid_from": f"CASE WHEN i % 10 = 0 THEN DATE '2023-01-01' + CAST(i // {offers} AS INTEGER) - 30 END",
        "observed_on": f"DATE '2023-01-01' + CAST(i // {offers} AS INTEGER)",
        "recorded_on": f"DATE '2023-01-01' + CAST(i // {offers} AS INTEGER) + CAST(i % 5 AS INTEGER)",
        "date_precision": "'day'",
        "source_id": "'user'",
        "confidence": "'high'",
    }
    columns = ", ".join(
        f'CAST({given.get(column.name, "NULL")} AS {DUCKDB_TYPES[column.kind]}) AS "{column.name}"'
        for column in TABLES["offers"].columns
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT {columns} FROM range({rows}) AS t(i)) "
            f"TO '{folder / 'offers.parquet'}' (FORMAT parquet, COMPRESSION zstd)"
        )


def ask(book: str) -> dict[str, float]:
    """Ask a catalog with this book for its prices on a day; return seconds, offers and peak memory."""
    from gpucost.catalog import open_catalog

    start = time.perf_counter()
    catalog = open_catalog(as_of=DAY, book=book)
    found = catalog.query_prices(
        "SELECT count(*) AS offers, avg(usd_per_gpu_hour) AS mean FROM prices_on($on_day, $known_day)"
    )[0]
    seconds = time.perf_counter() - start
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {
        "as_of_query_s": seconds,
        "offers": found["offers"],
        "mean_usd_per_gpu_hour": found["mean"],
        "peak_gb": peak_gb,
    }


def shipped(repeats: int = 9) -> float:
    """Return the median seconds of loading the shipped prices and asking for one day, modules warm."""
    from gpucost.catalog import open_catalog

    def once() -> float:
        start = time.perf_counter()
        open_catalog(as_of="2026-11-01").offers()
        return time.perf_counter() - start

    once()
    return median(once() for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--offers", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        print(json.dumps(ask(arguments.ask)))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_book(Path(folder), arguments.rows, arguments.offers)
        out = subprocess.run(
            [sys.executable, "-m", "benchmarks.catalog", "--ask", folder], check=True, capture_output=True, text=True
        )
    answer = {"rows": arguments.rows, **json.loads(out.stdout), "shipped_load_and_query_s": shipped()}
    if arguments.json:
        print(json.dumps(answer))
    else:
        print(
            f"shipped prices, loaded and asked for a day: "
            f"{1000 * answer['shipped_load_and_query_s']:.1f} ms (budget 60 ms)"
        )
        print(
            f"book of {answer['rows']:,} rows: as-of query {answer['as_of_query_s']:.2f} s (budget 2 s), "
            f"peak {answer['peak_gb']:.2f} GB (budget 2 GB)"
        )


if __name__ == "__main__":
    main()
