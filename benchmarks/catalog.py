"""Time and memory of the catalog: the shipped prices, and a price book near the two million rows that are read at most.

python -m benchmarks.catalog [--rows 1900000] [--offers 50000] [--json]
python -m benchmarks.catalog --small          # 300,000 rows of 2,000 offers, in under a minute

The book is in CSV and in Parquet. Of each: the command that reads it first, later ones, and the refusal of a copy of it
in which a row stands twice.
Commands are processes of their own with a cache folder that is empty at first. The books list every offer once a day.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from gpucost.schemas import DUCKDB_TYPES, TABLES

# the columns that a person would write; the others are derived
_THIN = "provider, gpu, gpus, region, option, instance_type, usd_per_gpu_hour, valid_from, observed_on, recorded_on"
_LATER = {
    "prices": ["prices", "--gpu", "h100", "--by", "provider"],
    "estimate": ["estimate", "--model", "8b", "--tokens", "100b", "--gpu", "h100"],
    "estimate as of a past day": [
        *("estimate", "--model", "8b", "--tokens", "100b", "--gpu", "h100", "--as-of", "2023-05-01"),
    ],
}


def write_book(folder: Path, rows: int, offers: int) -> None:
    """Write `rows` prices of `offers` offers, seen day by day, some recorded late and some valid from earlier."""
    import duckdb

    # by arithmetic on the number of a row, so that a book of any size is the same each time
    gpus = "['h100-sxm5-80gb', 'a100-sxm4-80gb', 'h200-sxm-141gb', 'b200-sxm']"
    values = {
        "offer_id": f"'synthetic/' || (i % {offers})",
        "offer_kind": "'offer'",
        "provider": f"'provider-' || (i % {offers} % 97)",
        "instance_type": f"'type-' || (i % {offers})",
        "gpu": f"list_extract({gpus}, 1 + i % {offers} % 4)",
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
    # every column of the table in its type, empty where nothing is written
    columns = ", ".join(
        f'CAST({values.get(column.name, "NULL")} AS {DUCKDB_TYPES[column.kind]}) AS "{column.name}"'
        for column in TABLES["offers"].columns
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT {columns} FROM range({rows}) AS t(i)) "
            f"TO '{folder / 'offers.parquet'}' (FORMAT parquet, COMPRESSION zstd)"
        )


NAMES = ("Parquet", "CSV", "CSV of ten columns")


def places(folder: Path) -> dict[str, Path]:
    """Return where each book is."""
    return {name: folder / str(number) for number, name in enumerate((*NAMES, *(f"{name}, twice" for name in NAMES)))}


def _write_books(folder: Path, rows: int, offers: int) -> None:
    """Write the book in every form, and each with a row of its middle at its end once more."""
    import duckdb

    books = places(folder)
    for path in books.values():
        path.mkdir()
    write_book(books["Parquet"], rows, offers)
    whole = f"'{books['Parquet'] / 'offers.parquet'}'"
    with duckdb.connect() as connection:
        twice = f"(FROM {whole} UNION ALL (FROM {whole} LIMIT 1 OFFSET {rows // 2}))"
        for name, columns, how in zip(NAMES, ("*", "*", _THIN), ("FORMAT parquet", "HEADER", "HEADER"), strict=True):
            for path, source in ((books[name], whole), (books[f"{name}, twice"], twice)):
                file = path / f"offers.{'parquet' if name == 'Parquet' else 'csv'}"
                if not file.exists():  # the first of them was written above
                    connection.execute(f"COPY (SELECT {columns} FROM {source}) TO '{file}' ({how})")


def command(arguments: list[str], book: Path, cache: Path) -> dict[str, Any]:
    """Run a command over a book; return its seconds, CPU-seconds, the most memory and what it said of errors."""
    environment = {**os.environ, "GPUCOST_BOOK": str(book), "XDG_CACHE_HOME": str(cache)}
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "gpucost", *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=errors
        )
        # the usage of this one process, where `resource` knows that of all children together
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        errors.seek(0)
        error = errors.read()
    return {
        "seconds": seconds,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_gb": usage.ru_maxrss * 1024 / 1e9,
        "exit_code": process.returncode,
        "error": error,
    }


def measured(books: dict[str, Path], cache: Path) -> list[dict[str, Any]]:
    """Run every command over every book."""
    rows = []
    for name, book in books.items():
        # the first builds the cache that the later ones read; of a book that is refused there is none
        commands = {"the first": _LATER["estimate"], **({} if "twice" in name else _LATER)}
        for label, arguments in commands.items():
            figures = command(arguments, book, cache)
            # a benchmark of what is answered wrongly would measure nothing
            refused = figures["exit_code"] != 0
            assert refused == ("twice" in name), figures["error"]
            assert not refused or re.search(r"stands twice: keep one row \(the other is row [\d,]+\)", figures["error"])
            rows.append({"book": name, "command": "refused" if refused else label, **figures})
    return rows


def shipped(repeats: int = 9) -> float:
    """Return the median seconds of loading the shipped prices and asking for one day, modules warm."""
    from gpucost.catalog import open_catalog

    newest = open_catalog().dated

    def once() -> float:
        start = time.perf_counter()
        open_catalog(as_of=newest).offers()
        return time.perf_counter() - start

    once()
    return median(once() for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_900_000)
    parser.add_argument("--offers", type=int, default=50_000)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    row_count, offers = (300_000, 2_000) if arguments.small else (arguments.rows, arguments.offers)
    if arguments.write:
        _write_books(Path(arguments.write), row_count, offers)
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "books").mkdir()
        size = ["--rows", str(row_count), "--offers", str(offers), "--write", f"{folder}/books"]
        # by another process: the most memory of a command counts from that of the process which starts it
        subprocess.run([sys.executable, "-m", "benchmarks.catalog", *size], check=True)
        rows = measured(places(Path(folder) / "books"), Path(folder) / "cache")
    answer = {"rows": row_count, "offers": offers, "shipped_load_and_query_s": shipped(), "commands": rows}
    if arguments.json:
        print(json.dumps(answer))
        return
    print(f"shipped prices, loaded and asked for a day: {1000 * answer['shipped_load_and_query_s']:.1f} ms (budget 60)")
    print(f"books of {row_count:,} rows, {offers:,} offers; later commands have 2 s and 0.5 GB, a refusal 10 s:")
    for row in rows:
        cost = f"{row['seconds']:6.2f} s {row['cpu_s']:7.2f} CPU-s {row['peak_gb']:5.2f} GB"
        print(f"{row['book']:27} {row['command']:27} {cost}")


if __name__ == "__main__":
    main()
