"""What the fuzzer asks of a finance desk: invoices, commitments, choices, comparisons."""

import csv
import gzip
import io
import json
from random import Random
from typing import Any

from benchmarks.fuzz import good
from benchmarks.fuzz.cases import Case, spoilt, written
from benchmarks.fuzz.values import (
    TEXTS,
    any_value,
    as_toml,
    dump,
    other_rows,
    spoilt_bytes,
    spoilt_json,
    spoilt_rows,
    spoilt_tree,
    text,
    toml_value,
)

_MOST_SPOILT_BYTES = 3_000_000  # of a shipped file
# what a hostile hand writes where a figure, a day or a name is meant
CELLS = (
    "", " ", "nan", "-1", "inf", "1e308", "5e-324", "1e15", "\u0663", "0x10", "1_000", "2026-13-01", "0000-00-00",
    "0001-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31", "9999-12-31T23:00:00-14:00", "290000-01-01T00:00:00Z",
    "2026-11-01T00:00:00", "2026-11-01 00:00:00+05:45", "2026-02-30", "infinity", "XXX", "EUR", "Purchase", "Credit",
    "Tax", "Correction", "9" * 400, "0", "-0", "[1]", "{", "take-or-pay", "12", "150%", "=1+1", "x" * 5000,
)  # fmt: skip


def _cells(random: Random, data: bytes) -> bytes:
    """Put a hostile figure, day or name into one cell or all cells of a column."""
    rows = list(csv.reader(io.StringIO(data.decode())))
    column, value = random.randrange(len(rows[0])), random.choice(CELLS)
    for row in rows[1:] if random.random() < 0.3 else [random.choice(rows[1:])]:
        row[column] = value
    return good.as_csv(rows)


def _table(random: Random, data: bytes) -> bytes:
    return _cells(random, data) if random.random() < 0.6 else spoilt(random, ".csv", data)


def _options(random: Random, values: dict[str, list[str]], most: int = 2) -> list[str]:
    """Draw options with values that they take, a figure or day of a hostile hand, or any text."""
    chosen = random.sample(sorted(values), random.randrange(most + 1))
    hostile = (*CELLS, text(random))
    drawn = {name: random.choice(values[name] if random.random() < 0.75 else hostile) for name in chosen}
    return [f"--{name}={value}" for name, value in drawn.items()]


def invoices(random: Random) -> Case:
    """An invoice against a saved answer or a planned one; a saved answer as charges."""
    files: dict[str, bytes | str] = {"answer.json": random.choice(good.answers()[:4]), "map.csv": good.MAP}
    if random.random() < 0.35:
        if random.random() < 0.6:
            files["answer.json"] = spoilt_json(random, good.answers()[random.randrange(4)])
        values = {"start": ["2026-11-01", "2024-02-29"], "rank": ["1", "2"], "side": ["own", "rent"],
                 "tag": ["team=a", "=", "a="]}  # fmt: skip
        target = random.choice(["out.csv", "out.parquet", "out.xlsx", "no/out.csv", "pipe.csv"])
        arguments = ["saved", "export", "--focus", "answer.json", *_options(random, values), "-o", target]
        return Case(arguments, files | {"pipe.csv": "fifo"})
    # an invoice in any of its forms, spoilt
    how = random.random()
    if how < 0.6:
        name, data = "invoice.csv", _table(random, good.INVOICE)
    elif how < 0.7:
        name, packed = "invoice.csv.gz", gzip.compress(_table(random, good.INVOICE))
        data = packed if random.random() < 0.6 else spoilt_bytes(random, packed)
    elif how < 0.9:
        head, *rows = csv.reader(io.StringIO(good.INVOICE.decode()))
        records: Any = spoilt_tree(random, [dict(zip(head, row, strict=True)) for row in rows])
        name, data = random.choice(["invoice.json", "invoice.jsonl"]), dump(records)
    else:
        whole = good.invoice_parquet()
        kind = random.choice(good.ODD_TYPES)
        odd = good.odd_parquet(random.randrange(60), kind, random.choice([0, 0, 1, 2, 3]), whole)
        name, data = "invoice.parquet", odd if random.random() < 0.6 else spoilt_bytes(random, whole)
    files[name] = data
    if random.random() < 0.2:
        name, files["plan.csv"] = "invoice.csv", _table(random, good.INVOICE)
        files["invoice.csv"] = good.INVOICE
    if random.random() < 0.15:
        files["map.csv"] = spoilt_rows(random, good.MAP)
    if random.random() < 0.04:
        name, files["pipe.csv"] = "pipe.csv", random.choice(["fifo", "folder", "link:pipe.csv", "link:/dev/zero"])
    values = {"estimate": ["answer.json", "plan.csv", "map.csv"], "start": ["2026-11-01"], "rank": ["1"],
             "map": ["map.csv"], "side": ["own", "rent"], "done": ["95%"], "rate": ["EUR=1.1"],
             "budget-rate": ["EUR=1.2"],
             "showback": ["team"], "idle-by": ["cost", "quantity", "even"]}  # fmt: skip
    first = random.choice([["--estimate=answer.json"], ["--estimate=answer.json"], ["--showback=team"], []])
    return Case(["reconcile", name, *first, *_options(random, values), *written(random)], files)


def commitments(random: Random) -> Case:
    """A history of use, agreements that hold, and the capacity to commit to."""
    files: dict[str, bytes | str] = {"usage.csv": good.USAGE, "agreements.csv": good.AGREEMENTS}
    spoiled = random.choice(["usage.csv", "agreements.csv", "agreements.csv", ""])
    if spoiled:
        files[spoiled] = _table(random, files[spoiled])  # type: ignore[arg-type]
    values = {"on-demand": ["4"], "committed": ["2"], "term": ["12"], "step": ["8"], "rungs": ["4"],
              "gpu": ["h100-sxm"], "provider": ["aws"], "region": ["us"], "agreements": ["agreements.csv"]}  # fmt: skip
    prices = random.choice([["--on-demand=4", "--committed=2"], ["--gpu=h100-sxm"], []])
    agreements = ["--agreements=agreements.csv"] if spoiled == "agreements.csv" else []
    name = "usage.csv"
    if random.random() < 0.1:
        name, rows = "usage.xlsx", other_rows(random, good.USAGE)
        files[name] = good.workbook(rows) if random.random() < 0.7 else spoilt_bytes(random, good.workbook(rows))
    return Case(["commit", name, *prices, *agreements, *_options(random, values, 3), *written(random)], files)


def choices(random: Random) -> Case:
    """Which accelerators suit, and anything against anything."""
    if random.random() < 0.5:
        values = {"purpose": ["desk", "serving", "fine-tuning", "training"], "budget": ["50k", "2k"], "model": ["8b"],
                 "tokens": ["1b"], "hours-per-month": ["100"], "gpu": ["h100-sxm,l40s"], "pool": ["h100-sxm=8"],
                 "workload": ["chat=serving 8b 5b", "tune=fine-tuning 1b", "a=serving 8b " + random.choice(CELLS)],
                 "provider": ["aws"], "region": ["us"], "option": ["on_demand"]}  # fmt: skip
        return Case(["choose", *_options(random, values, 4), *written(random)])
    files: dict[str, bytes | str] = {"s.toml": good.SCENARIO, "invoice.csv": good.INVOICE}
    for name in ("a.json", "b.json"):
        answer = random.choice(good.answers())
        files[name] = spoilt_json(random, answer) if random.random() < 0.3 else answer
    values = {"rank": ["1", "2"], "model": ["8b", "8b,70b"], "gpu": ["h100-sxm,h200"], "gpus": ["8"], "tokens": ["10b"],
             "provider": ["aws"], "region": ["us"], "option": ["on_demand"]}  # fmt: skip
    places = ["a.json", "b.json", "s.toml#Pretrain", "s.toml#Serve", "s.toml", "a.json#x", "#", "invoice.csv"]
    places.append(text(random))
    sides = random.choice([random.choices(places, k=random.choice([1, 2, 2, 2, 2, 3])), ["--speed"], []])
    return Case(["compare", *sides, *_options(random, values, 3), *written(random)], files)


def folders(random: Random) -> Case:
    """A data folder of the user's own: the shipped one, of which one file is spoilt."""
    from gpucost.catalog.loader import shipped_root

    root = shipped_root()
    every = sorted(path for part in ("models", "pricing") for path in (root / part).rglob("*") if path.is_file())
    # links, so that a folder of twenty megabytes costs nothing; the one that is spoilt takes its link's place
    files: dict[str, bytes | str] = {f"data/{path.relative_to(root)}": f"link:{path}" for path in every}
    spoilt_file = random.choice([path for path in every if path.stat().st_size < _MOST_SPOILT_BYTES])
    data, name = spoilt_file.read_bytes(), f"data/{spoilt_file.relative_to(root)}"
    files[name] = (
        _cells(random, data) if spoilt_file.suffix == ".csv" and random.random() < 0.8 else spoilt_bytes(random, data)
    )
    arguments = random.choice(
        [["prices", "--gpu", "h100-sxm", "--limit", "2"], ["estimate", *good.START["estimate"]], ["data", "check"],
         ["tco", "--gpu", "h100-sxm", "--gpus", "8", "--draws", "20"], ["inference", "--model", "8b", "--gpu", "l40s"],
         ["gpus"], ["models"], ["systems"], ["sources"], ["sql", "select count(*) from facts"], ["validate"]]
    )  # fmt: skip
    return Case([*arguments, "--format", "json"], files, {"GPUCOST_DATA": "data"})


def presets(random: Random) -> Case:
    """Settings by name, each of any kind."""
    from gpucost.limits import LIMITS

    known = [*LIMITS, "format", "fields", "as_of", "known_as_of", "provider", "book", "store", "data", "output",
             "quiet", "top", "region", "option", "gpu", "details", random.choice(TEXTS)]  # fmt: skip

    def setting() -> str:
        if random.random() < 0.5:
            return toml_value(random)
        return as_toml(any_value(random)) or "1"  # TOML has no word for nothing

    lines = [f"{json.dumps(name)} = {setting()}" for name in random.sample(known, random.choice([1, 1, 2]))]
    head = random.choice(["", "", "", "[prices]\n", "[estimate]\n", "[config]\n", "[limit]\n"])
    arguments = random.choice(
        [["config"], ["prices", "--gpu", "h100-sxm", "--limit", "1"], ["estimate", *good.START["estimate"]],
         ["sql", "select 1"], ["config", "--format", "json"]]
    )  # fmt: skip
    if random.random() < 0.4:
        name = f"GPUCOST_{random.choice(known)}".upper().replace("=", "").replace("\0", "") or "GPUCOST_X"
        value = random.choice([*CELLS, *TEXTS]).replace("\0", "").encode("utf-8", "replace").decode()
        return Case(arguments, {}, {name.encode("utf-8", "replace").decode(): value})
    return Case(arguments, {"gpucost.toml": (head + "\n".join(lines) + "\n").encode("utf-8", "surrogatepass")})
