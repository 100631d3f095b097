"""Price books that are strange are refused with the place, or read."""

import json

import pytest
from click.testing import CliRunner

import gpucost
from benchmarks.fuzz.good import (
    parquet,
)
from gpucost.errors import UsageError
from tests.commands import in_process

UNDECODABLE = "caf\udce9"  # a name in latin-1, as the system hands it over


def test_what_calibrate_says_of_a_book_steers_no_terminal(monkeypatch, tmp_path):
    from gpucost.cli import cli

    book = tmp_path / "a\x1b[2Jb"
    book.mkdir()
    monkeypatch.setenv("GPUCOST_BOOK", str(book))
    said = CliRunner().invoke(cli, ["calibrate", "--undo"])
    assert said.exit_code == 0
    assert "\x1b" not in said.output
    assert r"a\x1b[2Jb" in said.output


@pytest.mark.parametrize("name", ["gpus", "term_months"])
def test_a_count_without_end_in_a_book_is_refused(name, tmp_path):
    from gpucost.catalog import open_catalog

    book = tmp_path / "offers.csv"
    book.write_text(f"provider,gpu,usd_per_gpu_hour,observed_on,{name}\nours,h100-sxm,2,2026-06-01,1e999\n")
    with pytest.raises(UsageError, match=name):
        open_catalog(book=tmp_path).offers()


@pytest.mark.parametrize("value", ["[1]", '"x"', "2026-01-01", "{a = 1}", "nan"])
def test_a_term_of_another_type_in_a_book_is_refused(value, tmp_path):
    from gpucost.catalog import open_catalog

    book = tmp_path / "book.toml"
    offer = 'provider = "ours"\ngpu = "h100-sxm"\noption = "reserved"\nusd_per_gpu_hour = 2\nobserved_on = 2026-06-01'
    book.write_text(f"[[offer]]\n{offer}\nterm_months = {value}\n")
    with pytest.raises(UsageError, match="term_months"):
        open_catalog(book=book).offers()


def test_an_empty_text_in_a_book_is_a_cell_that_is_not_known_as_in_a_table(tmp_path):
    offer = 'provider = "ours"\ngpu = "h100-sxm"\noption = "on_demand"\nusd_per_gpu_hour = 2\nobserved_on = 2026-06-01'
    (tmp_path / "book.toml").write_text(f'[[offer]]\n{offer}\nterm_months = ""\n')
    offers = gpucost.open_catalog(book=tmp_path / "book.toml").offers("h100-sxm", "ours")
    assert [offer.term_months for offer in offers] == [0]  # no term


def test_a_parquet_book_whose_pages_unpack_to_nothing_is_refused(tmp_path):
    from gpucost.catalog import open_catalog

    data = bytearray(parquet())
    for place, byte in {544: 151, 1805: 15, 2730: 142, 3412: 68, 4024: 24}.items():
        data[place] = byte
    (tmp_path / "offers.parquet").write_bytes(data)
    with pytest.raises(UsageError):
        _ = open_catalog(book=tmp_path).price_rows


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
def test_a_price_of_the_first_or_the_last_day_there_is_is_judged(day, tmp_path):
    book = tmp_path / "offers.csv"
    book.write_text(f"provider,gpu,option,usd_per_gpu_hour,observed_on\nours,h100-sxm,on_demand,2,{day}\n")
    checked = in_process("data", "check", str(book))
    assert checked.returncode == 5
    assert day in checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("cells", "said"),
    [("CAST(NULL AS VARCHAR) AS option", "option: "), ("{'a': gpu} AS gpu", "gpu holds STRUCT")],
)
def test_a_book_without_a_way_to_buy_or_with_structures_in_its_cells_is_refused(tmp_path, cells, said):
    import duckdb

    from gpucost.catalog import open_catalog
    from gpucost.errors import DataError

    (tmp_path / "whole.parquet").write_bytes(parquet())
    (tmp_path / "book").mkdir()
    whole, made = f"'{tmp_path}/whole.parquet'", f"'{tmp_path}/book/offers.parquet'"
    duckdb.sql(f"COPY (SELECT * REPLACE ({cells}) FROM {whole}) TO {made} (FORMAT parquet)")
    with pytest.raises(DataError, match=said):
        open_catalog(book=tmp_path / "book").offers()


def test_a_workbook_that_the_system_does_not_take_is_refused(tmp_path, monkeypatch):
    import xlsxwriter.workbook

    def refused(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xlsxwriter.workbook.Workbook, "_store_workbook", refused)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UsageError, match=r"cannot write.*out\.xlsx"):
        gpucost.roofline("h100-sxm", matmul="8192x8192x8192").to_excel(tmp_path / "out.xlsx")
    assert not list(tmp_path.iterdir()), "nothing stays of what was laid aside"


def test_a_parquet_book_that_lies_of_what_it_leaves_out_is_refused(tmp_path):
    data = bytearray(parquet())
    data[data.index(b",\x15(\x15\x04", data.index(b"spot")) + 2] = 6  # three values where its own statistics say all
    (tmp_path / "offers.parquet").write_bytes(data)
    done = in_process("prices", "--gpu", "h100-sxm", GPUCOST_BOOK=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "offers.parquet:4:option: a value is required" in done.stderr


def test_a_parquet_book_that_breaks_the_database_is_refused(tmp_path):
    data = bytearray(parquet())
    for place, byte in {1061: 232, 1361: 103, 2240: 150, 2979: 24, 6091: 15}.items():
        data[place] = byte
    (tmp_path / "offers.parquet").write_bytes(data)
    done = in_process("data", "check", str(tmp_path / "offers.parquet"))
    assert done.returncode in (2, 5)
    assert "internal error" not in done.stderr
    done = in_process("prices", "--gpu", "h100-sxm", GPUCOST_BOOK=str(tmp_path))
    assert (done.returncode, done.stdout, "offers.parquet" in done.stderr) == (2, "", True)


def test_a_workbook_holds_what_is_no_utf8_as_an_escape(tmp_path):
    from gpucost.render.workbook.book import new_workbook

    with new_workbook(str(tmp_path / "a.xlsx")) as book:
        sheet = book.sheet("one", (40,) * 4)
        sheet.row(UNDECODABLE)
        sheet.paragraph(UNDECODABLE, 3)
        book.close()
    import openpyxl

    assert openpyxl.load_workbook(tmp_path / "a.xlsx")["one"]["A1"].value == r"caf\udce9"


@pytest.mark.parametrize("form", ["csv", "toml", "parquet"])
def test_a_price_that_is_no_figure_is_a_slip(form, tmp_path):
    import duckdb

    cells = {"provider": "ours", "gpu": "h100-sxm", "usd_per_gpu_hour": 5e-324, "observed_on": "2026-06-01"}
    file = tmp_path / f"offers.{form}"
    if form == "csv":
        file.write_text(",".join(cells) + "\n" + ",".join(map(str, cells.values())) + "\n")
    elif form == "toml":
        file.write_text("[[offer]]\n" + "".join(f"{key} = {json.dumps(cell)}\n" for key, cell in cells.items()))
    else:
        file.with_name("good").write_bytes(parquet())
        tiny = f"select * replace (5e-324 as usd_per_gpu_hour) from read_parquet('{file.with_name('good')}')"
        with duckdb.connect() as connection:
            connection.execute(f"copy ({tiny}) to '{file}' (format parquet)")
    with pytest.raises(UsageError, match="usd_per_gpu_hour"):
        gpucost.open_catalog(book=file).offers()
