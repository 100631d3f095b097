"""Large and hostile price files: read in little memory by the same rules as small ones, or refused with a sentence."""

import math
import re
from random import Random

import pytest

from benchmarks.fuzz.good import bomb, workbook
from gpucost.catalog import book_files, open_catalog
from gpucost.catalog.datacheck import check_one
from gpucost.catalog.sheets import read_sheets
from gpucost.errors import DataError, UsageError

DAY = "2026-11-20"
HEADER = "provider,gpu,gpus,option,usd_per_gpu_hour,observed_on,term_months,region,tier,currency,per_gpu_hour"
ROWS = f"""{HEADER},upfront_usd,recurring_usd_per_hour,system,x_note
ours,h100-sxm,8,,1.5,2026-06-01,,,,,,,,,a
ours,H100 SXM5 80GB,8,reserved,,2026-06-01,12,us-east-1,,EUR,1.1,,,,b
ours,l40s,1,spot,0.4,2026-06-01,,US East (1),gold,,,,,,
ours,b200,8,reserved,,2026-06-01,36,,,,,800000,1.5,dgx-b200,
ours,b200,8,reserved,,2026-06-01,36,eu,,,,800000,,dgx-b200,
ours,h200-sxm,8,reserved,2.5,2026-06-01,12,,,,2.51,87600,10,,
ours,h200-sxm,8,reserved,2.5,2026-06-01,24,,,,,,10,,
ours,h200-sxm,8.0,reserved,2.5,2026-06-01,36.0,,,,,,,,
ours,h200-sxm,8e0,on_demand,2.5,2026-06-01,0.0,,,,,,,,
"""


@pytest.fixture
def book(tmp_path):
    (tmp_path / "offers.csv").write_text(ROWS)
    return tmp_path


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(book_files, "LARGE_BYTES", 10)


def rows_of(book):
    catalog = open_catalog(DAY, book=book)
    catalog.prepare_prices()
    return catalog.query("SELECT * FROM book_offers WHERE book = 'user' ORDER BY offer_id")


def test_a_large_file_is_completed_as_a_small_one(book, monkeypatch):
    small = rows_of(book)
    monkeypatch.setattr(book_files, "LARGE_BYTES", 10)
    big = rows_of(book)
    assert len(small) == len(big) == 9
    assert not [row for row in small if ".0" in row["offer_id"] + row["instance_type"]]
    for one, other in zip(small, big, strict=True):
        for name, value in one.items():
            if isinstance(value, float):
                assert math.isclose(value, other[name], rel_tol=1e-12), name
            else:
                assert value == other[name], name
    assert open_catalog(DAY, book=book).offers(provider="ours")


@pytest.mark.parametrize(
    ("good", "bad", "reason"),
    [
        ("h100-sxm,8", "h1000,8", ":2:gpu: unknown accelerator"),
        (",1.5,", ",-1.5,", ":2:usd_per_gpu_hour: -1.5 is negative"),
        (",1.5,", ",cheap,", ":2:usd_per_gpu_hour: expected a number, found 'cheap'"),
        (",1.5,", ",nan,", ":2:usd_per_gpu_hour: 'nan' is not a finite number"),
        (",spot,", ",sopt,", ":4:option: 'sopt' is none of: on_demand"),
        (",EUR,", ",XYZ,", ":3:currency: no exchange rate for XYZ"),
        ("l40s,1,", "l40s,0,", ":4:gpus: zero stands for a missing value"),
        ("x_note", "note", ":1:note: table offers has no such column; did you mean notes"),
        ("x_note", "tier", ":1:tier: the column appears twice"),
        ("2026-06-01,,,,,,,,,a", "soon,,,,,,,,,a", ":2:observed_on: 'soon' is not a day; write YYYY-MM-DD"),
        (
            "2026-06-01,,,,,,,,,a",
            "2026-06-01,,,,EUR,,,,,a",
            ":2:currency: usd_per_gpu_hour is in USD: .* write per_gpu_hour",
        ),
        (
            "2026-06-01,,,,,,,,,a",
            "2026-06-01,,,,,9,,,,a",
            ":2:usd_per_gpu_hour: usd_per_gpu_hour 1.5 and per_gpu_hour, which is 9 USD, contradict",
        ),
        ("2026-06-01,,,,,,,,,a", "2026-06-01,,,,,x,,,,a", ":2:per_gpu_hour: expected a number, found 'x'"),
        ("2026-06-01,,,,,,,,,a", "2026-06-01,12,,,,,87600,5,,a", ":2:usd_per_hour: usd_per_hour 12 contradicts .* 15"),
        ("2026-06-01,,,,,,,,,a", "2026-06-01,12,,,,,,13,,a", ":2:usd_per_hour: usd_per_hour 12 contradicts .* 13"),
        ("l40s,1,", "l40s,1.6,", ":4:gpus: expected a whole number, found '1.6'"),
        ("l40s,1,", "l40s,1e30,", ":4:gpus: .*1e.?30"),
        ("36,,,,,8", "36.5,,,,,8", ":5:term_months: expected a whole number, found '36.5'"),
        ("2026-06-01,,,,,,,,,a", "2026-06-01,,,,,,9,,,a", ":2:upfront_usd: a price with upfront_usd needs term_months"),
        ("x_note", "price_kind", ":2:price_kind: 'a' is none of: list, contracted, effective"),
        (
            "x_note\nours,h100-sxm,8,,1.5,2026-06-01,,,,,,,,,a",
            "valid_until\nours,h100-sxm,8,,1.5,2026-06-01,,,,,,,,,soon",
            ":2:valid_until: 'soon' is not a day",
        ),
        ("dgx-b200", "nosuch", ":5:system: unknown system 'nosuch'"),
        ("ours,l40s", "=cmd(1),l40s", ":4:provider: .*cmd"),
        ("ours,l40s", "x" * 200_000 + ",l40s", "offers.csv"),
        ("ours,l40s", '"ours,l40s', "offers.csv: cannot be read"),
        ("gpu,", "gup,", "gup"),
    ],
)
def test_a_fault_in_a_large_file_is_named_with_its_row(book, large, good, bad, reason):
    (book / "offers.csv").write_text(ROWS.replace(good, bad, 1))
    with pytest.raises(DataError, match=reason):
        rows_of(book)
    assert len(check_one(open_catalog(DAY), book / "offers.csv", None).faults) == 1


def test_a_contract_that_would_end_before_it_holds_is_refused_in_a_large_file(tmp_path, large):
    header = "provider,gpu,usd_per_gpu_hour,valid_from,valid_until"
    (tmp_path / "offers.csv").write_text(f"{header}\nours,l40s,0.5,2026-06-01,2026-05-31\n")
    with pytest.raises(DataError, match=r":2:valid_until: .*2026-05-31.*2026-06-01"):
        rows_of(tmp_path)


@pytest.mark.slow
def test_a_file_is_checked_alike_whatever_its_size(book, monkeypatch):
    small = check_one(open_catalog(DAY), book / "offers.csv", None)
    monkeypatch.setattr(book_files, "LARGE_BYTES", 10)
    assert check_one(open_catalog(DAY), book / "offers.csv", None) == small
    assert [(fault.row, fault.column) for fault in small.faults] == [
        (7, "recurring_usd_per_hour"),  # part of the price alone is paid by the hour
        (8, "recurring_usd_per_hour"),
    ]
    assert small.rows == 9


def test_a_changed_file_of_any_format_changes_the_version(book, large):
    before = open_catalog(DAY, book=book).version
    (book / "offers.csv").write_text(ROWS.replace("1.5", "1.6", 1))
    assert open_catalog(DAY, book=book).version != before


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    from benchmarks.catalog import write_book

    folder = tmp_path_factory.mktemp("made")
    write_book(folder, 20, 5)
    return folder / "offers.parquet"


@pytest.mark.parametrize(
    ("setting", "value"), [("BOOK_UNPACKED_BYTES", 800), ("BOOK_ROWS", 19), ("BOOK_OFFERS", 4), ("BOOK_FILE_BYTES", 99)]
)
def test_a_packed_file_beyond_a_limit_is_refused_before_it_is_unpacked(parquet, monkeypatch, setting, value):
    assert len(rows_of(parquet)) == 20
    monkeypatch.setenv(f"GPUCOST_LIMIT_{setting}", str(value))
    with pytest.raises(UsageError, match=f"limit_{setting.lower()}"):
        rows_of(parquet)


def changed(folder, parquet, columns, rows="made"):
    """Write the book with other columns."""
    import duckdb

    duckdb.execute(f"CREATE OR REPLACE TEMP TABLE made AS SELECT * FROM '{parquet}'")
    duckdb.execute(f"COPY (SELECT {columns} FROM {rows}) TO '{folder / 'offers.parquet'}' (FORMAT parquet)")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("*, 'EUR' AS currency", ":1:currency: usd_per_gpu_hour is in USD"),
        (
            "*, 99.0 AS per_gpu_hour, 'USD' AS currency",
            ":1:usd_per_gpu_hour: .* and per_gpu_hour, which is 99 USD, contradict",
        ),
        (
            "*, DATE '2026-11-10' AS valid_untill",
            ":valid_untill: table offers has no such column; did you mean valid_until",
        ),
        ("* REPLACE (true AS gpus)", ":gpus: holds true and false"),
        ("* REPLACE (8.4 AS gpus)", ":1:gpus: expected a whole number"),
        ("* REPLACE (DATE '1970-01-01' AS observed_on)", ":1:observed_on: 1970-01-01"),
        ("* REPLACE ('yes' AS gpu_assumed)", ":1:gpu_assumed: expected 1 or 0, found 'yes'"),
        ("* REPLACE ('=1+1' AS provider)", ":1:provider: '=1.1'"),
        (
            "* EXCLUDE usd_per_hour REPLACE (CAST('nan' AS DOUBLE) AS usd_per_gpu_hour)",
            ":1:usd_per_gpu_hour: nan is not a finite",
        ),
        ("* REPLACE (9.0 AS upfront_usd)", ":1:upfront_usd: a price with upfront_usd needs term_months"),
        ("*, DATE '2000-01-01' AS valid_until", ":valid_until: .*2000-01-01"),
        (
            "* REPLACE (12 AS term_months, 13.0 * usd_per_hour AS recurring_usd_per_hour)",
            ":1:usd_per_hour: .*recurring_usd_per_hour.*upfront_usd",
        ),
    ],
)
def test_a_parquet_book_is_judged_as_one_in_csv(tmp_path, parquet, columns, reason):
    changed(tmp_path, parquet, columns)
    with pytest.raises(DataError, match=reason):
        rows_of(tmp_path)


@pytest.mark.parametrize(
    "columns",
    [
        "*, {'a': 1} AS x_note, [1, 2] AS x_list",
        "* REPLACE (0.0 AS gpu_assumed)",
        "* REPLACE (' ' || gpu || ' ' AS gpu, provider || ' ' AS provider)",
        "* REPLACE (CAST(NULL AS DOUBLE) AS usd_per_hour)",
        "* EXCLUDE (offer_kind, gpu_assumed, region_scope, billing, payment, source_id, confidence, usd_per_hour)",
        "* EXCLUDE (usd_per_hour, usd_per_gpu_hour), usd_per_gpu_hour / 1.25 AS per_gpu_hour, 'EUR' AS currency",
    ],
)
def test_a_parquet_book_may_leave_what_one_in_csv_may(tmp_path, parquet, columns):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "rates.toml").write_text("[exchange_rates]\nEUR = 1.25\n")
    changed(tmp_path / "book", parquet, columns)
    for one, other in zip(rows_of(parquet), rows_of(tmp_path / "book"), strict=True):
        for name in ("provider", "gpu", "gpus", "option", "observed_on", "recorded_on", "valid_from", "price_kind"):
            assert one[name] == other[name], name
        assert math.isclose(one["usd_per_hour"], other["usd_per_hour"])


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["", " EXCLUDE usd_per_hour"])
@pytest.mark.parametrize(("factor", "reason"), [(1, "twice"), (2, "two prices")])
def test_an_offer_that_stands_twice_on_a_day_is_refused_in_a_large_file(tmp_path, parquet, factor, reason, left_out):
    assert check_one(open_catalog(DAY), parquet, None).faults == []
    more = f"* REPLACE ({factor} * usd_per_hour AS usd_per_hour, {factor} * usd_per_gpu_hour AS usd_per_gpu_hour)"
    changed(tmp_path, parquet, f"*{left_out}", f"(FROM made UNION ALL SELECT {more} FROM made LIMIT 21)")
    with pytest.raises(DataError, match=f":offer_id: 'synthetic/.' .*{reason}"):
        rows_of(tmp_path)
    assert len(check_one(open_catalog(DAY), tmp_path / "offers.parquet", None).faults) == 1


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("* REPLACE ('nope' AS source_id)", ":1:source_id: 'nope' is not in pricing/sources.csv"),
        ("* REPLACE (DATE '2999-01-01' AS recorded_on)", ":1:recorded_on: 2999-01-01"),
        ("* REPLACE (DATE '2001-01-01' AS recorded_on)", ":1:recorded_on: 2001-01-01"),
        ("* REPLACE (12 AS term_months)", ":1:term_months: a price on_demand has no term; write 0"),
        ("* REPLACE ('reserved' AS option)", ":1:term_months: .*reserved"),
    ],
)
def test_the_check_of_a_large_file_says_what_that_of_a_small_one_says(tmp_path, parquet, columns, reason):
    changed(tmp_path, parquet, columns)
    first, *others = check_one(open_catalog(DAY), tmp_path / "offers.parquet", None).faults
    assert re.search(reason, str(first.error()))
    assert others, "every row is named"


def test_a_note_of_megabytes_is_refused(tmp_path, parquet):
    import duckdb

    spoilt = tmp_path / "offers.parquet"
    columns = f"SELECT * REPLACE (repeat('x', 3000000) AS notes) FROM '{parquet}' LIMIT 2"
    duckdb.execute(f"COPY ({columns}) TO '{spoilt}' (FORMAT parquet)")
    with pytest.raises(DataError, match=r":1:notes: .*3,000,000 characters.* at most 100,000"):
        rows_of(tmp_path)


@pytest.mark.slow
def test_damaged_parquet_gets_a_sentence(tmp_path, parquet):
    data, said = parquet.read_bytes(), []
    for seed in range(30):
        random, damaged = Random(seed), bytearray(data)
        for _ in range(random.choice([1, 5, 50])):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        (tmp_path / "offers.parquet").write_bytes(damaged)
        try:
            open_catalog(DAY, book=tmp_path).offers()
        except UsageError as error:  # and nothing else
            said.append(str(error))
    assert len(said) > 10
    assert not [sentence for sentence in said if "\n" in sentence]


def test_a_packed_bomb_and_a_cell_far_away_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "offers.xlsx"
    path.write_bytes(bomb(20))
    assert path.stat().st_size < 100_000
    monkeypatch.setenv("GPUCOST_LIMIT_WORKBOOK_BYTES", "10e6")
    with pytest.raises(DataError, match="limit_workbook_bytes"):
        read_sheets(path)
    import xlsxwriter

    with xlsxwriter.Workbook(path) as made:
        made.add_worksheet("offers").write(1_048_575, 16_383, "far")
    with pytest.raises(DataError, match="limit_workbook_cells"):
        read_sheets(path)


def test_cells_are_counted_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "offers.xlsx"
    path.write_bytes(workbook([["provider", "gpu"], *([["ours", "h100-sxm"]] * 100)]))
    assert len(read_sheets(path)[0].rows) == 100
    monkeypatch.setenv("GPUCOST_LIMIT_WORKBOOK_CELLS", "200")
    monkeypatch.setattr("openpyxl.load_workbook", lambda *_, **__: pytest.fail("too many cells are read"))
    with pytest.raises(DataError, match=r"200 cells.*limit_workbook_cells"):
        read_sheets(path)


def test_damaged_workbooks_get_a_sentence(tmp_path):
    data, said = workbook([["provider", "gpu", "usd_per_gpu_hour"], ["ours", "h100-sxm", 1.5]]), []
    for seed in range(30):
        random, damaged = Random(seed), bytearray(data)
        for _ in range(random.choice([1, 5, 50])):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        (tmp_path / "offers.xlsx").write_bytes(damaged)
        try:
            read_sheets(tmp_path / "offers.xlsx")
        except DataError as error:  # and nothing else
            said.append(error.file)
    assert len(said) > 10
    assert set(said) == {str(tmp_path / "offers.xlsx")}


def test_of_more_offers_than_are_ranked_the_cheapest_of_those_alike_speaks(tmp_path, large, monkeypatch):
    """Six offers of two kinds on two days: the cheapest of each kind and day stay; unlike ones are refused."""
    monkeypatch.setenv("GPUCOST_LIMIT_BOOK_OFFERS", "4")
    rows = [
        f"ours,{gpu},8,{price},2026-06-0{day},{gpu}-{price}"
        for gpu, price, day in [
            ("h100-sxm", 3, 1), ("h100-sxm", 2, 1), ("h100-sxm", 2.5, 2),
            ("l40s", 0.9, 1), ("l40s", 0.8, 1), ("l40s", 0.7, 1),
        ]
    ]  # fmt: skip
    header = "provider,gpu,gpus,usd_per_gpu_hour,observed_on,instance_type"
    (tmp_path / "offers.csv").write_text("\n".join([header, *rows]))
    with pytest.warns(UserWarning, match="of 6 offers 3 speak"):
        kept = rows_of(tmp_path)
    assert sorted(row["usd_per_gpu_hour"] for row in kept) == [0.7, 2, 2.5]
    unlike = [row.replace("ours", f"ours{place}") for place, row in enumerate(rows)]
    (tmp_path / "offers.csv").write_text("\n".join([header, *unlike]))
    with pytest.raises(DataError, match=r"6 offers.*4.*limit_book_offers"):
        rows_of(tmp_path)


def test_large_files_of_one_name_in_a_book_and_its_folder_of_offers_are_both_read(book, large):
    (book / "offers").mkdir()
    (book / "offers" / "offers.csv").write_text(ROWS.replace("ours,", "theirs,"))
    assert {row["provider"] for row in rows_of(book)} == {"ours", "theirs"}
