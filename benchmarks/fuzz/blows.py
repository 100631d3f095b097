"""What is small and becomes large: files that unpack, rows that repeat, signs that are escaped; and full disks."""

import gzip
import io
import tempfile
from functools import cache
from pathlib import Path
from random import Random

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case
from benchmarks.fuzz.waits import QUOTES

ROWS = 30_000_000  # far beyond every bound of gpucost/limits.csv, in a file of some hundred kilobytes


@cache
def repeated(kind: str, rows: int = ROWS) -> bytes:
    """Write a Parquet file of some hundred kilobytes that holds one row millions of times."""
    import duckdb

    selected = {
        "book": "'aws' provider, 'h100-sxm5-80gb' gpu, 8 gpus, 2.0 usd_per_gpu_hour, date '2026-11-01' observed_on",
        "cases": "'8b' model, 'h100-sxm' gpu, 8 gpus, '1b' tokens",
        "tokens": "'x' model, 'y' provider, 1.0 input_usd_per_mtok, 2.0 output_usd_per_mtok",
    }[kind]
    with tempfile.TemporaryDirectory() as place, duckdb.connect(config={"threads": 1}) as base:
        path = Path(place) / "many.parquet"
        base.execute(f"COPY (SELECT {selected} FROM range({rows})) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
        return path.read_bytes()


@cache
def _wide_rows() -> bytes:
    """An invoice whose one cell unpacks to hundreds of megabytes."""
    out = io.BytesIO()
    with gzip.open(out, "wb", 1) as file:
        file.write(good.INVOICE)
        for _ in range(200):  # megabytes
            file.write(b"x" * 1_000_000)
    return out.getvalue()


# signs that become longer when they are escaped, quoted, drawn or padded, so often
_GROWING = (
    "select repeat(chr(1), {n}) from range({m})",
    "select repeat(chr(8238), {n}) from range({m})",
    "select repeat('\"', {n}), repeat('\\', {n}) from range({m})",
    "select repeat('=', {n}) as \"{long}\" from range({m})",
    'select 1 as "{long}" from range({m})',
    "select list_resize([1], {n}) from range({m})",
    "select map([range], [repeat('x', {n})]) from range({m})",
    "select repeat(chr(119070), {n}) from range({m})",
    "select repeat('|', {n}) from range({m})",
    "select string_agg(repeat(chr(7), {n})) from range({m})",
)


def bombs(random: Random) -> Case:
    """Small inputs of which much would come: each is refused, or answered within its bounds."""
    # as a process of its own: its peak of memory is that of the case
    how, form = random.randrange(9), random.choice(["json", "json", "csv", "md", "table"])
    if how < 4:
        query = random.choice(_GROWING)
        size = random.choice([10, 300, 1000, 20_000, 100_000])
        sizes = {"n": size, "m": random.choice([1000, 250_000, 2_000_000]), "long": "x" * size}
        # longer than this no command line carries
        arguments = ["sql", "--time-limit", "5", "--format", form, "--", query.format(**sizes)[:120_000]]
        return Case(arguments, face="whole")
    if how == 4:
        files: dict[str, bytes | str] = {"book/offers.parquet": repeated("book")}
        return Case(["prices", "--gpu", "h100-sxm", "--format", form], files, {"GPUCOST_BOOK": "book"}, face="whole")
    if how == 5:
        return Case(
            ["sweep", "--cases", "cases.parquet", "--format", form], {"cases.parquet": repeated("cases")}, face="whole"
        )
    if how == 6:
        files = {"invoice.csv.gz": _wide_rows(), "answer.json": good.answers()[0]}
        arguments = ["reconcile", "invoice.csv.gz", "--estimate", "answer.json", "--format", form]
        return Case(arguments, files, face="whole")
    if how == 7:
        files = {"many.parquet": repeated("book")}
        arguments = ["prices", "refresh", "--from", "many.parquet", "--store", "new", "--format", form]
        return Case(arguments, files, face="whole")
    files = {"book.xlsx": good.bomb(random.choice([60, 600]))}
    return Case(["data", "check", "book.xlsx", "--table", "offers", "--format", form], files, face="whole")


def disks(random: Random) -> Case:
    """Every writer on a disk that is full: a sentence, the old file, and nothing beside it."""
    ending = random.choice(["json", "md", "html", "txt", "xlsx", "csv"])
    arguments = random.choice(
        [
            ["saved", "export", "--focus", "answer.json", "-o", "out.parquet"],
            ["saved", "export", "--focus", "answer.json", "-o", "out.csv"],
            ["sweep", "--model", "8b,70b", "--gpu", "h100-sxm", "--gpus=8:64:x2", "--tokens=1b", "-o", "out.parquet"],
            ["sweep", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "8,16", "--tokens", "1b", "-o", "out.csv"],
            ["prices", "--gpu", "h100-sxm", "-o", f"out.{ending}"],
            ["prices", "history", "--gpu", "h100-sxm", "-o", "out.html"],
            ["sql", "select * from offers limit 2000", "-o", f"out.{ending}"],
            ["estimate", *good.START["estimate"], "-o", f"out.{ending}"],
            ["init", "out.toml"],
            ["prices", "refresh", "--from", "quotes.csv", "--store", "new"],
            ["prices", "refresh", "--from", "quotes.csv", "--store", "new", "--publish", "out"],
        ]
    )  # fmt: skip
    files: dict[str, bytes | str] = {"answer.json": good.answers()[0], "quotes.csv": QUOTES}
    if (
        arguments[-1].startswith("out.") and random.random() < 0.5 and arguments[0] != "init"
    ):  # which overwrites nothing
        files[arguments[-1]] = b"old\n"
    return Case(arguments, files, face="full_disk", inputs=random.choice([0, 1, 100, 1000, 4096, 20_000]))
