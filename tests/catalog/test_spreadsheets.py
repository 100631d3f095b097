"""Quotes and books in Excel: typed as the cells are, and what cannot be read is named by sheet, row and column."""

from datetime import date, datetime

import openpyxl
import pytest
from click.testing import CliRunner

from gpucost.catalog import open_catalog
from gpucost.catalog.datacheck import check_one
from gpucost.cli import cli
from gpucost.errors import DataError
from tests.catalog.world import offer, world

HEADER = ["provider", "gpu", "gpus", "usd_per_gpu_hour", "valid_from", "x_contact"]
QUOTE = ["ours", "H100 SXM", 8, 1.75, date(2025, 6, 1), "K."]


@pytest.fixture
def workbook(tmp_path):
    """Return a function that writes sheets of rows and opens the catalog with the workbook as the book."""
    world(tmp_path / "root", [offer("listed", 3.0, "2025-06-01")])

    def write(name="quotes.xlsx", /, **sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        book.save(path)
        return path

    return write


def opened(tmp_path, book):
    return open_catalog("2025-07-01", root=tmp_path / "root", book=book, checked=False)


def test_one_sheet_of_any_name_is_a_list_of_prices(tmp_path, workbook):
    found = opened(tmp_path, workbook(Sheet1=[HEADER, QUOTE])).offers(provider="ours")[0]
    assert (found.gpu, found.gpus, found.usd_per_hour, found.book) == ("h100-sxm5-80gb", 8, 14.0, "user")
    assert (found.price_kind, found.observed_on) == ("contracted", date(2025, 6, 1))


def test_empty_rows_and_cells_count_for_nothing(tmp_path, workbook):
    rows = [[], [None, None], HEADER, [], QUOTE, [None, "  "]]
    assert len(opened(tmp_path, workbook(Sheet1=rows)).offers(provider="ours")) == 1


def test_a_folder_may_hold_a_workbook_of_offers_beside_other_files(tmp_path, workbook):
    path = workbook("book/offers.xlsx", Quotes=[HEADER, QUOTE])
    (path.parent / "rates.toml").write_text('[[discount]]\nprovider = "acme"\nfraction = 0.5\n')
    catalog = opened(tmp_path, path.parent)
    assert catalog.offers(provider="ours")[0].usd_per_gpu_hour == 1.75
    assert catalog.offers(provider="acme")[0].usd_per_gpu_hour == 1.5


def test_sheets_are_named_after_what_they_hold(tmp_path, workbook):
    path = workbook(
        Accelerators=[["id", "like", "bf16_tflops"], ["next", "h100-sxm", 3000]],
        offers=[
            ["provider", "gpu", "per_gpu_hour", "currency", "observed_on"],
            ["ours", "next", 2, "EUR", datetime(2025, 6, 30)],
        ],
        exchange_rates=[["currency", "usd_per_unit"], ["eur", 1.5]],
        discounts=[["provider", "fraction", "valid_until"], ["acme", 0.1, date(2026, 1, 1)]],
        x_remarks=[["anything"], ["at all"]],
    )
    catalog = opened(tmp_path, path)
    assert catalog.accelerator("next").bf16_tflops == 3000
    assert catalog.offers(provider="ours")[0].usd_per_gpu_hour == 3.0
    assert catalog.offers(provider="acme")[0].usd_per_gpu_hour == pytest.approx(2.7)


def test_a_formula_counts_by_its_saved_value_only(tmp_path, workbook):
    path = workbook(Sheet1=[HEADER, [*QUOTE[:3], "=14/8", *QUOTE[4:]]])  # written without a value beside it
    with pytest.raises(DataError, match=r"quotes\.xlsx\[Sheet1\]:2:D: the formula has no saved value"):
        _ = opened(tmp_path, path).books


@pytest.mark.parametrize(
    ("rows", "place", "reason"),
    [
        ([HEADER, [*QUOTE[:3], "tbd", *QUOTE[4:]]], "Sheet1]:2:usd_per_gpu_hour", "expected a number, found 'tbd'"),
        ([HEADER, QUOTE, [], [*QUOTE[:3], -1, *QUOTE[4:]]], "Sheet1]:4:usd_per_gpu_hour", "-1 is negative"),
        ([HEADER, [*QUOTE[:4], "1.6.2025", None]], "Sheet1]:2:valid_from", "'1.6.2025' is not a day; write YYYY-MM-DD"),
        ([HEADER, [*QUOTE[:4], datetime(2025, 6, 1, 9, 30), None]], "Sheet1]:2:E", "2025-06-01"),
        ([HEADER, [*QUOTE, "stray"]], "Sheet1]:2:G", "no name"),
        ([[*HEADER, "gpu"], QUOTE], "Sheet1]:1:gpu", "appears twice"),
        ([[*HEADER, "price"], [*QUOTE, 1]], "Sheet1]:2:price", "table offers has no such column"),
        ([HEADER, [*QUOTE[:2], "#REF!", *QUOTE[3:]]], "Sheet1]:2:C", "the cell holds the error #REF!"),
    ],
)
def test_what_cannot_be_read_is_named_by_sheet_row_and_column(tmp_path, workbook, rows, place, reason):
    with pytest.raises(DataError) as caught:
        _ = opened(tmp_path, workbook(Sheet1=rows)).books
    assert f"quotes.xlsx[{place}" in str(caught.value)
    assert reason in str(caught.value)


def test_an_unknown_sheet_among_several_is_refused_with_the_names_that_are_known(tmp_path, workbook):
    path = workbook(offers=[HEADER, QUOTE], Summary=[["total"], [1]])
    with pytest.raises(DataError, match=r"a sheet called 'Summary'.*offers, accelerators"):
        _ = opened(tmp_path, path).books


def test_what_is_no_workbook_is_said_to_be_none(tmp_path):
    world(tmp_path / "root")
    path = tmp_path / "quotes.xlsx"
    path.write_text("provider,gpu\n")
    with pytest.raises(DataError, match=r"quotes\.xlsx: is not an \.xlsx workbook"):
        _ = opened(tmp_path, path).books


def test_a_workbook_is_checked_like_any_other_file(tmp_path, workbook):
    good, bad = workbook(Sheet1=[HEADER, QUOTE]), workbook("bad.xlsx", Sheet1=[HEADER, [*QUOTE[:3], 0, *QUOTE[4:]]])
    catalog = open_catalog("2025-07-01", root=tmp_path / "root", checked=False)
    assert (check_one(catalog, good, None).rows, check_one(catalog, good, None).faults) == (1, [])
    assert [fault.row for fault in check_one(catalog, bad, None).faults] == [2]


def test_the_command_line_reads_a_workbook_as_the_book(tmp_path, workbook):
    path = workbook(Sheet1=[HEADER, [*QUOTE[:4], date(2026, 6, 1), None]])
    result = CliRunner(env={"GPUCOST_BOOK": str(path)}).invoke(cli, ["prices", "--provider", "ours", "--format", "csv"])
    assert result.exit_code == 0, result.output
    assert "ours" in result.output
    assert "1.75" in result.output
