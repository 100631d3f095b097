"""The index of a large price book: answers are those of the file itself, whatever became of the index meanwhile."""

import json
import os
import shutil
import subprocess
import sys
import warnings
from datetime import date, timedelta
from random import Random

import duckdb
import pytest

from gpucost.catalog import book_files, book_index, open_catalog, prices
from gpucost.catalog.datacheck import check_one
from gpucost.errors import DataError
from gpucost.schemas import DUCKDB_TYPES, TABLES

DAY = "2026-11-20"
ANY = {"gpu": None, "provider": None, "region": None, "option": None}
FIRST = date(2026, 1, 1)
FACTS = ("valid_from", "valid_until", "observed_on", "recorded_on", "source_id", "confidence", "usd")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Keep indexes in a folder of the test's own, of files of any size."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(book_index, "FEWEST_ROWS", 0)
    monkeypatch.setattr(book_files, "LARGE_BYTES", 10)
    monkeypatch.setattr(book_index, "_SETTLED_NS", 0)
    return tmp_path / "cache" / "gpucost" / "books"


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


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_the_file_read_where_it_lies(tmp_path, monkeypatch, cache, seed):
    book = write_parquet(tmp_path / "book" / "offers.parquet", random_rows(seed)).parent
    if seed % 2:
        (book / "discounts.toml").write_text('[[discount]]\nprovider = "lambda"\nfraction = 0.1\n')
    for days in DAYS:
        indexed = asked(book, days)
        with monkeypatch.context() as patch:
            patch.setattr(book_index, "FEWEST_ROWS", 1e9)
            assert indexed == asked(book, days), days
    assert len(indexes(cache)) == 1
    assert indexed["every"]


def indexes(cache):
    return sorted(path for path in cache.iterdir() if path.is_dir())


def test_a_price_that_is_superseded_is_not_among_those_that_may_speak(tmp_path, cache):
    """Day by day a new price: of sixty rows the last six may speak today, those of one day on that day."""
    catalog = open_catalog(DAY, book=csv_book(tmp_path / "book"))
    catalog.prepare_prices()
    (facts,) = cache.glob("*/facts.parquet")
    count = f"SELECT count(*) AS n FROM '{facts}' WHERE speaks_from <= $day AND superseded_on > $day"
    assert [catalog.query(count, parameters={"day": day})[0]["n"] for day in (FIRST, date(2026, 1, 5))] == [6, 6]
    assert catalog.query(count, parameters={"day": catalog.as_of})[0]["n"] == 6
    assert len([offer for offer in catalog.offers() if offer.provider == "ours"]) == 6


def ours(book):
    return [offer for offer in open_catalog(DAY, book=book).offers() if offer.book == "user"]


def test_the_second_time_no_row_is_judged_again(tmp_path, cache, monkeypatch):
    book = csv_book(tmp_path / "book")
    first = ours(book)
    monkeypatch.setattr("gpucost.catalog.price_files._packed", lambda *_: pytest.fail("the file is read again"))
    assert ours(book) == first
    assert len(first) == 6
    folder = shutil.move(book, tmp_path / "moved")
    assert ours(folder) == first, "an index goes by what the file holds, not by its place"


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


@pytest.mark.parametrize(
    "how", ["cut", "a byte", "empty", "no file", "other counts", "no verdict", "a file", "another's"]
)
def test_a_harmed_index_is_made_anew(tmp_path, cache, how):
    book = csv_book(tmp_path / "book")
    before = ours(book)
    (index,) = indexes(cache)
    harm(index, how)
    assert ours(book) == before
    assert len(before) == 6
    assert json.loads((index / "verdict.json").read_bytes().partition(b"\n")[2])["rows"] == 60
    assert not list(cache.glob("*.part-*")), "what was made on the way is gone"


def test_a_changed_file_is_read_anew_even_where_its_size_and_day_stay(tmp_path):
    book = csv_book(tmp_path / "book")
    file = book / "offers.csv"
    before, looks = ours(book), file.stat()
    file.write_text(file.read_text().replace(",1.3,EUR", ",1.9,EUR"))
    os.utime(file, ns=(looks.st_atime_ns, looks.st_mtime_ns))
    after = ours(book)
    assert file.stat().st_size == looks.st_size
    assert [offer.usd_per_gpu_hour for offer in after] != [offer.usd_per_gpu_hour for offer in before]


def test_what_names_and_currencies_mean_is_part_of_the_name(tmp_path, cache):
    book = csv_book(tmp_path / "book")
    before = ours(book)
    (book / "rates.toml").write_text("[exchange_rates]\nEUR = 2.5\n")
    after = ours(book)
    assert [offer.usd_per_gpu_hour for offer in after] == [2 * offer.usd_per_gpu_hour for offer in before]
    (book / "gpus.toml").write_text('[[accelerator]]\nid = "h100-sxm"\nlike = "h100-pcie"\n')
    assert {offer.gpu for offer in ours(book)} == {"h100-sxm", "l40s"}
    assert len(indexes(cache)) == 3


@pytest.mark.parametrize("blocked", ["a file in its place", "no folder can be made"])
def test_without_a_cache_the_file_is_read_each_time_and_that_is_said(tmp_path, monkeypatch, cache, blocked):
    book = csv_book(tmp_path / "book")
    before = ours(book)
    if blocked == "a file in its place":
        shutil.rmtree(cache)
        cache.write_text("")
    else:
        (tmp_path / "flat").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "flat" / "below"))
    for _ in range(2):
        with pytest.warns(UserWarning, match="is not kept.*every command reads the file anew"):
            assert ours(book) == before


def test_several_processes_make_and_read_one_index_at_once(tmp_path, cache):
    book = csv_book(tmp_path / "book", 9_000)
    code = """
import sys, warnings
warnings.simplefilter("error", UserWarning)
from gpucost.catalog import book_files, book_index, open_catalog
book_files.LARGE_BYTES = 10
for _ in range(2):
    print(len(open_catalog("2026-11-20", book=sys.argv[1]).offers(provider="ours")))
"""
    command = [sys.executable, "-c", code, str(book)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].split() for process in processes] == [["48", "48"]] * 3
    assert len(indexes(cache)) == 1


def test_a_question_in_sql_reads_the_index(tmp_path):
    catalog = open_catalog(DAY, book=csv_book(tmp_path / "book"))
    rows = catalog.sql("SELECT count(*) AS n FROM prices WHERE book = 'user'")
    rows += catalog.sql("SELECT count(*) AS n FROM prices_on('2026-01-03') WHERE book = 'user'")
    rows += catalog.sql("SELECT count(*) AS n FROM book_offers WHERE book = 'user'")
    assert [row["n"] for row in rows] == [6, 6, 60]


def test_old_indexes_go_once_nobody_uses_them(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(book_index, "_MOST_KEPT", 1)
    for rows in (20, 30, 40):
        ours(csv_book(tmp_path / "book", rows))
    assert len(indexes(cache)) == 3, "another process may read them"
    for index in indexes(cache):
        os.utime(index, (0, 0))
    ours(csv_book(tmp_path / "book", 50))
    assert len(indexes(cache)) == 2


def test_of_more_offers_than_are_ranked_the_index_holds_those_that_speak(tmp_path, monkeypatch, cache):
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
    assert len(indexes(cache)) == 2
    with pytest.warns(UserWarning, match="of 3 offers 1 speak"):
        report = check_one(open_catalog(DAY), tmp_path / "book" / "offers.csv", None)
    assert report.rows == 3, "those that do not speak are checked, too"


def test_a_row_that_stands_twice_is_named_with_its_other(tmp_path):
    book = csv_book(tmp_path / "book")
    lines = (book / "offers.csv").read_text().splitlines()
    (book / "offers.csv").write_text("\n".join([*lines, lines[7], ""]))
    with pytest.raises(
        DataError, match=r"offers.csv:62:offer_id: .* stands twice: keep one row \(the other is row 8\)"
    ):
        ours(book)
    (book / "offers.csv").write_text("\n".join([*lines, lines[7].replace("T0", "t0").replace(",1", ",5", 1), ""]))
    with pytest.raises(DataError, match=r":62:offer_id: .* two prices on one day: .* \(the other is row 8\)"):
        ours(book)


def test_a_row_that_stands_twice_by_its_id_is_named_whatever_else_it_says(tmp_path):
    lines = ["offer_id,provider,gpu,gpus,usd_per_gpu_hour,observed_on"]
    lines += [f"{'' if n % 2 else f'own/{n}'},seller-{n},l40s,1,1.5,2026-06-01" for n in range(8)]
    (tmp_path / "offers.csv").write_text("\n".join([*lines, "own/4,another,h100-sxm,8,2,2026-06-01", ""]))
    with pytest.raises(DataError, match=r":10:offer_id: 'own/4' has two prices on one day: .*the other is row 6"):
        ours(tmp_path)
    (tmp_path / "offers.csv").write_text("\n".join([*lines, lines[4], ""]))
    with pytest.raises(DataError, match=r":10:offer_id: 'seller-3/.* stands twice: keep one row .* row 5"):
        ours(tmp_path)


def test_the_error_of_a_book_that_stands_twice_throughout_is_one_short_sentence(tmp_path):
    book = csv_book(tmp_path / "book")
    header, *lines = (book / "offers.csv").read_text().splitlines()
    (book / "offers.csv").write_text("\n".join([header, *lines, *lines, ""]))
    with pytest.raises(DataError, match="the other is row 2; 59 more offers like this") as error:
        ours(book)
    assert error.value.row == 62
    assert len(error.value.reason) < 200
