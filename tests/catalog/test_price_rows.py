"""One SQL completes and checks every price: what it says of cells, ids, names and rows that are like others."""

import pytest

from gpucost.catalog import book_files, open_catalog
from gpucost.catalog.datacheck import check_one
from gpucost.catalog.loader import Store, shipped_root
from gpucost.catalog.price_rows import every_column, forbidden, offer_id_sql
from gpucost.errors import DataError
from gpucost.schemas.validation import cell_fault

DAY = "2026-11-20"
CELLS = (
    *("1", "0", "-1", "1.5", "12.0", "1e3", "1e-300", "1e30", "1e400", "nan", "inf", "-inf", ".5", "5.", "+2", "0x10"),
    *("1_000", "1,000", "1,5", "$5", "5%", "=1+1", "=>", "==", "@x", "yes", "true", "FALSE", "٣", "many", "5e", "- 1"),
    *("2026-01-05", "2026-1-5", "2026/01/05", "1989-12-31", "2026-02-30", "2026-01-05 10:00", "epoch", "05.01.2026"),
    *("on_demand", "sopt", "region", "per_use", "none", "list", "day", "high", "acme", "x" * 200),
)


@pytest.fixture(params=[4_000_000, 1], ids=["small", "large"])
def size(request, monkeypatch):
    monkeypatch.setattr(book_files, "LARGE_BYTES", request.param)
    return request.param


@pytest.fixture
def rows_of(tmp_path, size):
    """Return a function that reads a CSV file of prices as a book of that size."""

    def opened(text):
        (tmp_path / "offers.csv").write_text(text, "utf-8")
        catalog = open_catalog(DAY, book=tmp_path)
        catalog.prepare_prices()
        return catalog.query("SELECT * FROM book_offers WHERE book = 'user' ORDER BY notes, offer_id")

    return opened


def test_the_database_and_the_reader_of_a_cell_forbid_the_same():
    """What a column forbids is decided in SQL, in any file of prices; the sentence is that of the reader of a cell."""
    store = Store(shipped_root())
    store.load("cells", {"cell": "VARCHAR"}, [CELLS])
    for column in every_column():
        wrong = store.fetch(f"SELECT cell, {forbidden(column, 'cell')} AS wrong FROM cells")
        assert len(wrong) == len(CELLS)
        for row in wrong:
            said = cell_fault(column, row["cell"])
            assert row["wrong"] == bool(said), (column.name, row["cell"], said)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/on_demand"),
        (
            {"option": "'reserved'", "term_months": "12", "payment": "'no_upfront'"},
            "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/reserved/12mo/no_upfront",
        ),
        ({"region": "NULL", "region_scope": "'any'"}, "aws/p5.48xlarge/8xh100-sxm5-80gb/global/on_demand"),
        ({"tier": "'secure'"}, "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/on_demand.secure"),
        ({"tier": "'on_demand'"}, "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/on_demand"),
        ({"gpu": "'a|b'", "region": "'US East (1)'"}, "aws/p5.48xlarge/8xa~b/us-east-1/on_demand"),
        ({"region": "'東京'"}, "aws/p5.48xlarge/8xh100-sxm5-80gb/東京/on_demand"),
        ({"region": "'São Paulo'"}, "aws/p5.48xlarge/8xh100-sxm5-80gb/são-paulo/on_demand"),
    ],
)
def test_an_offer_is_known_by_one_id(cells, expected):
    row = {
        "provider": "'aws'", "instance_type": "'p5.48xlarge'", "gpus": "8", "gpu": "'h100-sxm5-80gb'",
        "region": "'us-east-1'", "region_scope": "'region'", "option": "'on_demand'", "tier": "NULL",
        "term_months": "0", "payment": "'none'",
    }  # fmt: skip
    query = f"SELECT {offer_id_sql(**{**row, **cells})} AS offer_id"
    assert Store(shipped_root()).fetch(query) == [{"offer_id": expected}]


def test_regions_in_any_script_are_offers_of_their_own(rows_of):
    header = "provider,gpu,usd_per_hour,observed_on,region\n"
    rows = rows_of(f"{header}ours,l40s,1,2026-01-05,東京\nours,l40s,2,2026-01-05,北京\n")
    assert {row["region"]: row["usd_per_hour"] for row in rows} == {"東京": 1.0, "北京": 2.0}
    assert len({row["offer_id"] for row in rows}) == 2


def test_a_provider_is_one_however_its_letters_are_written(rows_of):
    """AWS and Amazon are the shipped aws; of a provider that nobody knows the first spelling stands for all."""
    header = "provider,gpu,usd_per_hour,observed_on,instance_type,notes\n"
    names = ("AWS", "Amazon", "Acme", "acme", "ACME")
    lines = [f"{name},l40s,1,2026-01-05,type-{place},{place}" for place, name in enumerate(names)]
    assert [row["provider"] for row in rows_of(header + "\n".join(lines))] == ["aws", "aws", "Acme", "Acme", "Acme"]


def test_a_price_of_an_accelerator_on_a_system_of_another_is_refused(rows_of):
    header = "provider,gpu,gpus,usd_per_hour,observed_on,system\n"
    with pytest.raises(DataError, match=":2:system: the system dgx-a100-640 holds a100-sxm4-80gb, not h100-sxm5-80gb"):
        rows_of(f"{header}ours,h100-sxm,8,20,2026-01-05,dgx-a100\n")


@pytest.mark.slow
def test_a_row_that_is_like_a_shipped_one_has_what_it_does_not_state(rows_of):
    model = "aws/p5.48xlarge/8xh100-sxm5-80gb/us-east-1/on_demand"
    (row,) = rows_of(f"like,usd_per_hour,valid_from\n{model},20,2026-01-05\n")
    assert (row["offer_id"], row["gpus"], row["usd_per_gpu_hour"], row["region"]) == (model, 8, 2.5, "us-east-1")
    assert (row["source_id"], row["price_kind"], row["system_id"]) == ("user", "contracted", "aws-p5.48xlarge")
    with pytest.raises(DataError, match=r"offers\.csv:3:like: like = 'nobody' names no row of offers"):
        rows_of(f"like,usd_per_hour,valid_from\n{model},20,2026-01-05\nnobody,20,2026-01-05\n")


def test_a_row_may_be_like_one_above_it(tmp_path):
    (tmp_path / "book.toml").write_text(
        '[[offer]]\nprovider = "ours"\ngpu = "h100-sxm"\ngpus = 8\ntier = "gold"\nusd_per_hour = 20\n'
        'observed_on = 2026-01-05\n[[offer]]\nlike = "ours/8x-h100-sxm5-80gb/8xh100-sxm5-80gb/global/on_demand.gold"\n'
        "usd_per_hour = 16\nobserved_on = 2026-02-05\n"
    )
    catalog = open_catalog(DAY, book=tmp_path)
    catalog.prepare_prices()
    rows = catalog.query("SELECT * FROM book_offers WHERE book = 'user' ORDER BY observed_on")
    assert [(row["tier"], row["gpus"], row["usd_per_gpu_hour"]) for row in rows] == [("gold", 8, 2.5), ("gold", 8, 2)]


def test_a_check_holds_prices_against_the_market_in_files_of_any_size(tmp_path, size):
    header = "provider,gpu,gpus,usd_per_hour,observed_on\n"
    (tmp_path / "offers.csv").write_text(f"{header}ours,l40s,1,1,2026-06-01\nours2,l40s,1,1000,2026-06-01\n")
    (fault,) = check_one(open_catalog(DAY), tmp_path / "offers.csv", None).faults
    assert (fault.row, fault.column) == (3, "usd_per_hour")
    assert "per month" in fault.reason


def test_a_complete_parquet_file_is_held_to_its_systems_and_names(tmp_path):
    import duckdb

    from benchmarks.catalog import write_book

    write_book(tmp_path, 4, 4)
    made, book = tmp_path / "offers.parquet", tmp_path / "book"
    book.mkdir()
    changed = "* REPLACE ('dgx-a100-640' AS system_id, 'h100-sxm5-80gb' AS gpu, 8 AS gpus)"
    duckdb.execute(f"COPY (SELECT {changed} FROM '{made}') TO '{book}/offers.parquet'")
    with pytest.raises(DataError, match=":1:system_id: the system dgx-a100-640 holds a100-sxm4-80gb"):
        open_catalog(DAY, book=book).offers()
    changed = "* REPLACE ('H100 SXM' AS gpu, 'AWS' AS provider)"
    duckdb.execute(f"COPY (SELECT {changed} FROM '{made}') TO '{book}/offers.parquet'")
    catalog = open_catalog(DAY, book=book)
    catalog.prepare_prices()
    rows = catalog.query("SELECT DISTINCT provider, gpu FROM book_offers WHERE book = 'user'")
    assert rows == [{"provider": "aws", "gpu": "h100-sxm5-80gb"}]
