"""Files of every kind that the program answers or reads, before they are spoilt."""

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

# an answerable start of each command
START: dict[str, list[str]] = {
    "estimate": ["--model", "8b", "--tokens", "10b", "--gpu", "h100-sxm", "--gpus", "64", "--top", "1"],
    "inference": ["--model", "8b", "--gpu", "h100-sxm", "--top", "1"],
    "tco": ["--gpu", "h100-sxm", "--gpus", "64", "--draws", "20"],
    "mix": ["--constant", "33", "--gpu", "h100-sxm", "--months", "12"],
    "fit": ["--model", "8b", "--gpu", "h100-sxm"],
    "throughput": ["--model", "8b", "--gpu", "h100-sxm", "--gpus", "8"],
    "roofline": ["--gpu", "h100-sxm", "--matmul", "8192x8192x8192"],
    "audit": ["--model", "8b", "--tokens", "100b", "--gpu", "h100-sxm", "--gpus", "64", "--days", "8"],
    "compare": ["answer.json", "answer.json"],
    "rerun": ["answer.json"],
    "report": ["answer.json"],
    "init": ["new.toml"],
    "sql": ["select 1"],
    "validate": ["--core"],
    "calibrate": ["--measurements", "training.csv"],
    "prices": ["--gpu", "h100-sxm", "--limit", "2"],
    "data": ["check", "plan.toml"],
    "watch": ["train.log", "--estimate", "answer.json"],
    "bench": ["bench.json", "--show"],
    "choose": ["--purpose", "serving", "--gpu", "h100-sxm,l40s"],
    "commit": ["usage.csv", "--on-demand", "4", "--committed", "2"],
    "reconcile": ["invoice.csv", "--estimate", "answer.json"],
    "export": ["--focus", "answer.json", "-o", "out.csv"],
}

# files that the program reads, each with what its kind may hold; tests of the gate begin with them too
POOL = b"""[[pool]]
name = "lab"
gpu = "h100-sxm"
gpus = 8
system = "dgx-h100"
available_gpus = 64
incremental_usd_per_gpu_hour = 0.3
loaded_usd_per_gpu_hour = 1.7
region = "us"
observed_on = 2026-01-01
"""
SUPPLY = b"""gpu = "h100-sxm"
[[supply]]
name = "reserved"
kind = "reserved"
usd_per_gpu_hour = 1.9
term_months = 12
"""
DEMAND = b"month,gpus\n1,8\n2,16\n3,33\n4,20\n"
CURVE = b"month,usd_per_gpu_hour\n1,2.35\n12,2\n24,1.8\n"
LENGTHS = b"prompt,output\n100,50\n2000,300\n512,256\n"
PROFILE = "\n".join(str(0.5 + hour % 12 / 24) for hour in range(24)).encode()
# a book of every part: offers in two currencies, a discount, a rate, a chip of one's own
BOOK = b"""[[offer]]
provider = "our-colo"
gpu = "h100-sxm"
gpus = 8
system = "dgx-h100"
usd_per_gpu_hour = 1.75
valid_from = 2026-01-01
valid_until = 2027-12-31

[[offer]]
provider = "hoster"
gpu = "h100-sxm"
option = "reserved"
term_months = 12
per_gpu_hour = 0.95
currency = "EUR"
observed_on = 2026-06-15

[[discount]]
provider = "gcp"
option = "on_demand"
fraction = 0.12

[exchange_rates]
EUR = 1.12

[[accelerator]]
id = "next-gpu"
like = "h100-sxm5-80gb"
memory_gib = 100
"""
BOOK_CSV = b"""provider,gpu,gpus,option,usd_per_gpu_hour,observed_on,x_contact
our-colo,h100-sxm,8,on_demand,1.7,2026-06-01,K.
hoster,l40s,1,spot,0.4,2026-06-02,
"""
SCENARIO = b"""name = "A model of our own"
description = "Text"
as_of = "2026-11-20"
[supply]
option = "on_demand"
gpu = "h100-sxm"
[[training]]
name = "Pretrain"
model = "8b"
tokens = "10b"
gpus = 64
top = 2
[[serving]]
name = "Serve"
model = "8b"
gpu = "h100-sxm"
top = 2
[[ownership]]
name = "64 H100"
gpu = "h100-sxm"
gpus = 64
utilisation = "70%"
years = 4
rent = 2.35
draws = 10
"""
QUOTES = b"""name,usd_per_gpu_hour,term_months,billing,upfront_fraction
acme,2.46/h,12,take-or-pay,20%
other,$3,0,per use,0
"""
# the columns of FOCUS, the billing standard, that reconciling reads: a charge in dollars, one in euro, a credit
_CHARGES = {
    "BilledCost": ("10", "20", "-3"),
    "EffectiveCost": ("10", "20", "-3"),
    "ListCost": ("10", "25", "0"),
    "ContractedCost": ("10", "25", "0"),
    "BillingCurrency": ("USD", "EUR", "USD"),
    "ChargeCategory": ("Usage", "Usage", "Credit"),
    "ChargeClass": ("", "", ""),
    "CommitmentDiscountId": ("", "c1", ""),
    "CommitmentDiscountStatus": ("", "Used", ""),
    "ChargePeriodStart": ("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z", "2026-11-01T00:00:00Z"),
    "ChargePeriodEnd": ("2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z", "2026-11-02T00:00:00Z"),
    "SkuId": ("p5", "p5", "p5"),
    "ProviderName": ("aws", "aws", "aws"),
    "ServiceName": ("Compute", "Compute", "Compute"),
    "PricingQuantity": ("5", "9", ""),
    "PricingUnit": ("Hours", "Hours", ""),
    "ConsumedQuantity": ("5", "9", ""),
    "ConsumedUnit": ("Hours", "Hours", ""),
    "x_GpusPerUnit": ("8", "8", ""),
    "x_Line": ("compute", "compute", ""),
    "Tags": ('{"team":"a"}', '{"team":"b"}', ""),
}
MAP = b"invoice,estimate\np5,HGX H100\n"
USAGE = b"time,gpus\n" + b"".join(b"2026-10-01T%02d:00:00Z,%d\n" % (hour, 8 + hour % 7) for hour in range(24))
# one of each kind of agreement; the last has ended
AGREEMENTS = b"""name,kind,start,end,gpus,usd_per_gpu_hour,usd_per_hour,usd,usd_per_month,fraction
r,reservation,2026-01-01,2027-06-01,4,2,,,,
s,savings_plan,2026-01-01,2027-06-01,,2,8,,,
c,credit,2026-01-01,2027-06-01,,,,1000,100,
p,private,2026-01-01,2027-06-01,,,,,,0.1
a,annual,2026-01-01,2027-06-01,,,,100000,,
k,contract,2026-01-01,2026-10-01,,1.8,,,,
"""
# a setting of each kind, for all commands and for some
SETTINGS = b"""format = "json"
provider = "aws"
as_of = "2026-11-20"
known_as_of = "2026-11-20"
book = "book"
store = "prices"
data = "facts"
fields = "gpu"
limit_nesting = 64
limit_query_seconds = "20"
[estimate]
top = 2
gpus = 8
option = "on_demand"
[sweep]
workers = 1
[config]
format = "json"
[tco]
draws = 10
utilisation = "70%"
"""
# lines of a trainer's log, as `watch` and `calibrate` read them
LOG = b"".join(
    b"step: %d  loss: 4.2  memory: 40.03GiB(50%%)  tps: 9000.0  tflops: 412.4  mfu: 41.7%%\n" % step
    for step in range(5)
)


def as_csv(rows: Iterable[Sequence[Any]]) -> bytes:
    """Write rows as CSV, whatever stands in them."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


INVOICE = as_csv([list(_CHARGES), *zip(*_CHARGES.values(), strict=True)])


@cache
def plan() -> bytes:
    """Every input of an ownership."""
    import gpucost

    return str(gpucost.tco(gpu="h100-sxm", gpus=64, draws=0).to_plan()).encode()


@cache
def answers() -> list[bytes]:
    """Real answers of every question."""
    import gpucost
    from gpucost.ask.speed import roofline

    results = [
        gpucost.estimate("8b", "10b", gpu="h100-sxm", gpus=64, top=2),
        gpucost.inference("8b", gpu="h100-sxm", top=2),
        gpucost.tco(gpu="h100-sxm", gpus=64, draws=20, as_of="2026-11-20"),
        gpucost.mix(constant=33, gpu="h100-sxm", months=12, as_of="2026-11-20"),
        gpucost.fit("8b", "h100-sxm"),
        gpucost.throughput("8b", "h100-sxm", 8),
        roofline("h100-sxm", matmul="8192x8192x8192"),
        gpucost.audit(model="8b", tokens="100b", gpu="a100-80gb", gpus=8, days=8),
        gpucost.report(
            {"name": "One", "training": [{"name": "A", "model": "8b", "tokens": "1b", "gpus": 8, "top": 1}]}
        ),
    ]
    return [json.dumps(result.to_dict()).encode() for result in results]


@cache
def estimate_with_facts() -> bytes:
    """A saved estimate as the command writes it, facts and seal included."""
    from click.testing import CliRunner

    from gpucost.cli import cli

    return CliRunner().invoke(cli, ["estimate", *START["estimate"], "--format", "json"]).stdout_bytes


@cache
def measurements(kind: str) -> bytes:
    """The first shipped rows."""
    # the header and three rows: a spoilt file should be read to its end
    return b"".join((ROOT / f"models/measurements/{kind}.csv").read_bytes().splitlines(keepends=True)[:4])


@cache
def configurations() -> list[bytes]:
    """Configurations of published models."""
    published = json.loads((ROOT / "tests/architectures/published.json").read_text())
    return [json.dumps(entry["config"]).encode() for entry in published.values()]


@cache
def bench() -> bytes:
    """A machine on record as the bench file that it wrote."""
    from gpucost.catalog import open_catalog

    rows = [row for row in open_catalog().rows("bench_measurements") if row["machine"] == "h200"]
    figures = [{"id": row["case"], **{k: v for k, v in row.items() if v is not None}} for row in rows[:40]]
    head = {"schema_version": 1, "kind": "bench", "profile": "full", "started": "2026-11-22", "software": {}}
    whole = {"machine": {"device": "NVIDIA H200", "gpus": 1, "power_limit_w": 700.0}, "figures": figures}
    return json.dumps({**head, **whole, "failed": [], "notes": []}, default=str).encode()


@cache
def parquet() -> bytes:
    """A book of prices as Parquet."""
    from benchmarks.catalog import write_book

    with tempfile.TemporaryDirectory() as place:
        write_book(Path(place), 20, 5)  # rows, offers
        return (Path(place) / "offers.parquet").read_bytes()


# types that a column of prices may have where another program wrote it
ODD_TYPES = (
    "DECIMAL(38, 10)", "TIMESTAMPTZ", "TIMESTAMP_NS", "HUGEINT", "BLOB", "BOOLEAN", "TIME", "UUID", "INTERVAL",
    "DOUBLE", "VARCHAR", "DATE", "UTINYINT", "FLOAT", "VARCHAR[]", "STRUCT(a VARCHAR)", "MAP(VARCHAR, VARCHAR)",
)  # fmt: skip


@cache
def invoice_parquet() -> bytes:
    """The invoice as Parquet."""
    import duckdb

    with tempfile.TemporaryDirectory() as place, duckdb.connect(config={"threads": 1}) as base:
        old, new = Path(place) / "old.csv", Path(place) / "new.parquet"
        old.write_bytes(INVOICE)
        base.execute(f"COPY (FROM read_csv('{old}')) TO '{new}' (FORMAT parquet)")
        return new.read_bytes()


def odd_parquet(column: int, kind: str, how: int, whole: bytes = b"") -> bytes:
    """Write a Parquet book, or another file, one column of which has another type, is empty, or is nested."""
    import duckdb

    with tempfile.TemporaryDirectory() as place:
        old, new = Path(place) / "old.parquet", Path(place) / "new.parquet"
        old.write_bytes(whole or parquet())
        with duckdb.connect(config={"threads": 1}) as base:
            names = [row[0] for row in base.execute(f"DESCRIBE SELECT * FROM '{old}'").fetchall()]
            name = names[column % len(names)]
            values = (
                f'TRY_CAST("{name}" AS {kind})',
                f"CAST(NULL AS {kind})",
                f'["{name}"]',
                f"""{{'a': "{name}"}}""",
            )
            try:
                base.execute(
                    f"COPY (SELECT * REPLACE ({values[how]} AS \"{name}\") FROM '{old}') TO '{new}' (FORMAT parquet)"
                )
            except duckdb.Error:  # no such cast is known
                return whole or parquet()
        return new.read_bytes()


def workbook(rows: list[list[Any]], sheet: str = "offers") -> bytes:
    """Write rows as an .xlsx file."""
    import xlsxwriter

    out = io.BytesIO()
    # not a number and infinity as errors of Excel: else the writer refuses them, and the reader never sees any
    with xlsxwriter.Workbook(out, {"in_memory": True, "nan_inf_to_errors": True}) as book:
        page = book.add_worksheet(sheet)
        for number, row in enumerate(rows):
            page.write_row(number, 0, row)
    return out.getvalue()


@cache
def bomb(megabytes: int) -> bytes:
    """A workbook of some kilobytes whose sheet unpacks to many megabytes."""
    import zipfile

    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook([["provider", "gpu"], ["a", "h100-sxm"]]))) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            data = old.read(name)
            if "sheet1" in name:  # spaces at its end pack to nearly nothing
                data = data.replace(b"</sheetData>", b" " * (megabytes * 1_000_000) + b"</sheetData>")
            new.writestr(name, data)
    return out.getvalue()
