"""Loading: typed, from CSV and from Parquet alike, files read once, and nothing read too early."""

import shutil
from datetime import date

import pytest

from gpucost import clock
from gpucost.catalog import open_catalog
from gpucost.catalog.loader import Store, parquet_file, shipped_root, write_twins
from gpucost.errors import DataError
from gpucost.schemas import DUCKDB_TYPES, TABLES
from tests.catalog.world import offer, world, write


@pytest.mark.slow
def test_both_readers_give_equal_tables(tmp_path):
    root = shipped_root()
    for folder in ("pricing", "models"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.parquet"))
    plain = Store(tmp_path)
    made = write_twins(tmp_path, tmp_path)
    twin = Store(tmp_path)
    for name, table in TABLES.items():
        plain.ensure(name)
        assert "read_parquet" not in plain._reader(name) or not plain._digests
        if not twin.contents(name).files:
            continue
        assert made[parquet_file(tmp_path, table).relative_to(tmp_path).as_posix()].is_file()
        assert "read_parquet" in twin._reader(name)
        twin.ensure(name)
        query = f'SELECT * FROM "{name}" ORDER BY ALL'
        rows = twin.fetch(query)
        assert rows == plain.fetch(query)
        assert rows or name != "offers"


def test_a_parquet_twin_of_other_contents_is_not_read(tmp_path):
    world(tmp_path, [offer("a", 1, "2025-01-01")])
    write_twins(tmp_path, tmp_path)
    world(tmp_path, [offer("a", 2, "2025-01-01")])
    assert open_catalog("2025-02-01", root=tmp_path, checked=False).offers()[0].usd_per_hour == 2


def test_columns_have_the_types_of_the_schema():
    catalog = open_catalog()
    described = {row["column_name"]: row["column_type"] for row in catalog.query('DESCRIBE "offers"', "offers")}
    assert described == {column.name: DUCKDB_TYPES[column.kind] for column in TABLES["offers"].columns}


def test_an_empty_cell_is_missing_and_never_zero(tmp_path):
    world(tmp_path, [offer("a", 1, "2025-01-01")])
    row = open_catalog(root=tmp_path, checked=False).rows("offers")[0]
    assert row["upfront_usd"] is None
    assert row["valid_from"] is None
    assert row["observed_on"] == date(2025, 1, 1)


def test_opening_reads_nothing_and_each_file_is_read_once(tmp_path, monkeypatch):
    world(tmp_path, [offer("a", 1, "2025-01-01")])
    reads = []
    import gpucost.catalog.loader as loader

    original = loader.read_contents
    monkeypatch.setattr(
        loader, "read_contents", lambda root, table: (reads.append(table.name), original(root, table))[1]
    )
    catalog = open_catalog("2025-02-01", root=tmp_path, checked=False)
    assert reads == []
    for _ in range(3):
        catalog.offers()
        _ = catalog.version
    assert len(reads) == len(set(reads))


def test_the_version_stamps_contents_and_date(tmp_path):
    first = open_catalog(root=world(tmp_path, [offer("a", 1, "2025-01-01")]), checked=False).version
    assert first.startswith("2025-01-01+")
    assert open_catalog(root=tmp_path, checked=False).version == first
    assert open_catalog(root=world(tmp_path, [offer("a", 2, "2025-01-01")]), checked=False).version != first


def test_a_malformed_cell_is_named_by_file_row_and_column(tmp_path):
    root = world(tmp_path, [offer("a", 1, "2025-01-01"), offer("b", 1, "2025-01-01")])
    write(root, "offers", [offer("a", 1, "2025-01-01"), offer("b", "cheap", "2025-01-01")])
    with pytest.raises(DataError, match=r"test\.csv:3:usd_per_hour: expected a number, found 'cheap'"):
        open_catalog("2025-02-01", root=root, checked=False).offers()


@pytest.mark.parametrize(
    "change", [lambda data: b"\xef\xbb\xbf" + data, lambda data: data.replace(b"name", b'"name"', 1)]
)
def test_a_header_is_read_as_that_of_any_other_file(tmp_path, change):
    root = world(tmp_path, [offer("a", 1, "2025-01-01")])
    write(root, "offers", [offer("b", 2, "2025-01-01")], file="pricing/offers/other.csv")
    for path in root.rglob("*.csv"):
        path.write_bytes(change(path.read_bytes()))
    catalog = open_catalog("2025-02-01", root=root, checked=False)
    assert sorted(row.usd_per_hour for row in catalog.offers()) == [1, 2]
    store = Store(root)
    store.ensure("accelerators")  # one file, which the database reads where it lies
    assert store.rows("accelerators") == catalog.rows("accelerators")


def test_a_header_beyond_any_is_refused(tmp_path):
    root = world(tmp_path, [offer("a", 1, "2025-01-01")])
    path = root / "pricing/offers/test.csv"
    path.write_text("x" * 140_000 + path.read_text())
    with pytest.raises(DataError, match=r"test\.csv:1: is not readable as CSV"):
        open_catalog("2025-02-01", root=root, checked=False).offers()


def test_columns_in_another_order_are_refused_and_not_swapped(tmp_path):
    root = world(tmp_path, [offer("a", 1, "2025-01-01")])
    path = root / "pricing/offers/test.csv"
    lines = [line.split(",") for line in path.read_text().splitlines()]
    path.write_text("\n".join(",".join([line[1], line[0], *line[2:]]) for line in lines) + "\n")
    with pytest.raises(DataError, match="order"):
        open_catalog("2025-02-01", root=root, checked=False).offers()


def test_the_day_is_today_or_the_catalogs_own_where_the_clock_is_behind(tmp_path):
    root = world(tmp_path, [offer("a", 1, "2090-01-01")])
    assert open_catalog(root=root, checked=False).as_of == date(2090, 1, 1)
    root = world(tmp_path, [offer("a", 1, "2020-01-01")])
    assert open_catalog(root=root, checked=False).as_of == clock.today()
