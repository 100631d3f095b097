"""Large CSV files of prices: what speaks of many offers, and rows that stand twice."""

import os
import shutil
import warnings
from datetime import date, timedelta
from random import Random

import duckdb
import pytest

from gpucost.catalog import book_files, open_catalog, prices
from gpucost.catalog.datacheck import check_one
from gpucost.errors import DataError
from gpucost.schemas import DUCKDB_TYPES, TABLES

DAY = "2026-11-20"
ANY = {"gpu": None, "provider": None, "region": None, "option": None}
FIRST = date(2026, 1, 1)
FACTS = ("valid_from", "valid_until", "observed_on", "recorded_on", "source_id", "confidence", "usd")


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Read files of any size as large ones."""
    monkeypatch.setattr(book_files, "LARGE_BYTES", 10)


def a_row(chance: Random, shipped: list[str]) -> dict:
    """Return a price of one of few offers on one of few days, so that every order of days, ends and ties comes up."""
    number = chance.randrange(12)
    observed = FIRST + timedelta(chance.randrange(30))
    valid_from = chance.choice([None, None, observed, observed + timedelta(chance.randint(-9, 9))])
    start = valid_from or observed
    return {
        "offer_id": shipped[number] if number < 2 else f"own/{number}",
        "provider": f"seller-{number % 3}",
        "instance_type": f"type-{number if chance.random() < 0.9 else 'b'}",
        "gpu": ["h100-sxm5-80gb", "l40s"][number % 2],
        "region": chance.choice([None, "here"]) if number == 3 else f"region-{number % 4}",
        "region_scope": "any" if number == 3 else "region",
        "option": ["on_demand", "spot"][number % 2],
        "valid_from": valid_from,
        "observed_on": observed,
        "recorded_on": observed + timedelta(chance.choice([0, 0, 1, 5, 20])),
        "valid_until": chance.choice([None, None, None, start + timedelta(chance.randrange(12))]),
        "source_id": chance.choice(["user", "other"]),
        "confidence": chance.choice(["low", "high"]),
        "usd": chance.choice([1.0, 2.0, chance.uniform(1, 9)]),
        "notes": chance.choice([None, "seen twice"]),
    }


def write_parquet(path, rows):
    """Write rows as a Parquet file with every column of a price in a book."""
    constant = {
        "offer_kind": "'offer'", "gpu_assumed": "false", "gpus": "1", "billing": "'per_use'", "term_months": "0",
        "payment": "'none'", "usd_per_hour": "usd", "usd_per_gpu_hour": "usd", "date_precision": "'day'",
    }  # fmt: skip
    names = list(rows[0])
    columns = ", ".join(
        f"CAST({constant.get(column.name, column.name if column.name in names else 'NULL')} AS"
        f' {DUCKDB_TYPES[column.kind]}) AS "{column.name}"'
        for column in TABLES["offers"].columns
    )
    path.parent.mkdir(exist_ok=True)
    with duckdb.connect() as connection:
        types = {"usd": "DOUBLE", **dict.fromkeys(("valid_from", "valid_until", "observed_on", "recorded_on"), "DATE")}
        cells = ", ".join(f"{name} {types.get(name, 'VARCHAR')}" for name in names)
        connection.execute(f"CREATE TABLE r ({cells})")
        connection.executemany(
            f"INSERT INTO r VALUES ({', '.join('?' * len(names))})", [[*row.values()] for row in rows]
        )
        connection.execute(f"COPY (SELECT {columns}, valid_until FROM r) TO '{path}' (FORMAT parquet)")
    return path


def random_rows(seed: int, count: int = 120) -> list[dict]:
    chance, taken, rows = Random(seed), set(), []
    shipped = [offer.offer_id for offer in open_catalog(DAY).offers(gpu="h100-sxm")[:2]]
    while len(rows) < count:
        row = a_row(chance, shipped)
        key = tuple(row[name] for name in TABLES["offers"].key)
        if key not in taken:
            taken.add(key)
            rows.append(row)
    return rows


def csv_book(folder, rows=60):
    """Write a book in CSV that leaves to follow what it may, of offers that are seen day by day."""
    folder.mkdir(exist_ok=True)
    lines = ["provider,gpu,gpus,option,per_gpu_hour,currency,observed_on,region,instance_type"]
    for n in range(rows):
        gpu, day = ["h100-sxm", "l40s"][n % 2], FIRST + timedelta(n // 6 % 200)
        lines.append(f"ours,{gpu},8,on_demand,{1 + n % 7 / 10},EUR,{day},Place {n % 2},T{n % 6 + n // 1200 * 6}")
    (folder / "offers.csv").write_text("\n".join(lines) + "\n")
    (folder / "rates.toml").write_text("[exchange_rates]\nEUR = 1.25\n")
    return folder


DAYS = [(None, None), ("2026-01-10", None), ("2026-01-20", "2026-01-12"), ("2026-01-29", "2026-02-20"),
        ("2026-02-10", "2026-01-08"), ("2025-12-25", None)]  # fmt: skip


def asked(book, days):
    """Ask several questions of a book as of a day, as known on a day."""
    catalog = open_catalog(*days, book=book)
    own = "SELECT * FROM book_offers WHERE book = 'user' ORDER BY ALL"
    return {
        "rows": [row for row in catalog.price_rows if row["book"] != "shipped"],
        "offers": [offer for offer in catalog.offers() if offer.book != "shipped"],
        "ended": catalog.ended,
        "prices": prices.current(catalog, {**ANY, "gpu": {"l40s"}}, 400),
        "history": prices.history(catalog, {**ANY, "provider": {"seller-1", "ours"}}),
        "every": [{k: v for k, v in row.items() if k not in ("seen_until", "gone")} for row in catalog.query(own)],
        "values": sorted(catalog.offer_values("region")),
    }


def indexes(cache):
    return sorted(path for path in cache.iterdir() if path.is_dir())


def ours(book):
    return [offer for offer in open_catalog(DAY, book=book).offers() if offer.book == "user"]


def harm(index, how):
    facts, kinds, verdict = index / "facts.parquet", index / "kinds.parquet", index / "verdict.json"
    if how == "cut":
        facts.write_bytes(facts.read_bytes()[:-7])
    elif how == "a byte":
        data, before = bytearray(facts.read_bytes()), facts.stat()
        data[len(data) // 3] ^= 4
        facts.write_bytes(data)
        os.utime(facts, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "empty":
        kinds.write_bytes(b"")
    elif how == "no file":
        facts.unlink()
    elif how == "other counts":
        verdict.write_bytes(verdict.read_bytes().replace(b'"rows": 60', b'"rows": 61'))
    elif how == "no verdict":
        verdict.write_text("[]")
    elif how == "a file":
        shutil.rmtree(index)
        index.write_text("nothing")
    elif how == "another's":
        other = csv_book(index.parent / "other", 30)
        ours(other)
        (foreign,) = [path for path in indexes(index.parent) if path not in (index, other)]
        shutil.copy(foreign / "facts.parquet", facts)


@pytest.mark.slow
def test_of_more_offers_than_are_ranked_the_cheapest_alike_speak(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUCOST_LIMIT_BOOK_OFFERS", "4")
    rows = ["provider,gpu,gpus,usd_per_gpu_hour,observed_on,instance_type"]
    rows += [f"ours,l40s,1,{price},2026-06-0{day},type-{price}" for price in (0.7, 0.8, 0.9) for day in (1, 2)]
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "offers.csv").write_text("\n".join([*rows, ""]))
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(ours(tmp_path / "book")) == 3
    monkeypatch.setenv("GPUCOST_LIMIT_BOOK_OFFERS", "2")
    for _ in range(2):
        with pytest.warns(UserWarning, match="of 3 offers 1 speak"):
            assert [offer.usd_per_gpu_hour for offer in ours(tmp_path / "book")] == [0.7]
    with pytest.warns(UserWarning, match="of 3 offers 1 speak"):
        report = check_one(open_catalog(DAY), tmp_path / "book" / "offers.csv", None)
    assert report.rows == 3, "those that do not speak are checked, too"


def test_a_row_that_stands_twice_is_named_with_its_other(tmp_path):
    book = csv_book(tmp_path / "book")
    lines = (book / "offers.csv").read_text().splitlines()
    (book / "offers.csv").write_text("\n".join([*lines, lines[7], ""]))
    with pytest.raises(DataError, match=r"offers.csv:62:offer_id: .*row 8\)"):
        ours(book)
    (book / "offers.csv").write_text("\n".join([*lines, lines[7].replace("T0", "t0").replace(",1", ",5", 1), ""]))
    with pytest.raises(DataError, match=r":62:offer_id: .* two prices .*row 8\)"):
        ours(book)


def test_a_row_that_stands_twice_by_its_id_is_named_whatever_else_it_says(tmp_path):
    lines = ["offer_id,provider,gpu,gpus,usd_per_gpu_hour,observed_on"]
    lines += [f"{'' if n % 2 else f'own/{n}'},seller-{n},l40s,1,1.5,2026-06-01" for n in range(8)]
    (tmp_path / "offers.csv").write_text("\n".join([*lines, "own/4,another,h100-sxm,8,2,2026-06-01", ""]))
    with pytest.raises(DataError, match=r":10:offer_id: 'own/4' has two prices on one day: .*the other is row 6"):
        ours(tmp_path)
    (tmp_path / "offers.csv").write_text("\n".join([*lines, lines[4], ""]))
    with pytest.raises(DataError, match=r":10:offer_id: 'seller-3/.* row 5"):
        ours(tmp_path)


def test_the_error_of_a_book_that_stands_twice_throughout_is_one_short_sentence(tmp_path):
    book = csv_book(tmp_path / "book")
    header, *lines = (book / "offers.csv").read_text().splitlines()
    (book / "offers.csv").write_text("\n".join([header, *lines, *lines, ""]))
    with pytest.raises(DataError, match="row 2; 59 more") as error:
        ours(book)
    assert error.value.row == 62
    assert len(error.value.reason) < 200


def test_more_rows_than_are_read_for_every_question_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUCOST_LIMIT_BOOK_ROWS", "10")
    with pytest.raises(DataError, match="limit_book_rows"):
        ours(csv_book(tmp_path / "book"))
