"""What a finance team finds in its workbook: a live first sentence, dates, legible print, bars from nothing, a mix."""

import re
import subprocess
import zipfile
from functools import cache

import pytest

import gpucost
from gpucost.formula.spreadsheet import LONGEST
from gpucost.render.decision import SENTENCES
from gpucost.render.excel import write_workbook
from tests.money.plans import catalog
from tests.render import answers
from tests.render.programs import profile, recalculate
from tests.render.sheets import change_inputs, live_cells


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    folder = tmp_path_factory.mktemp("books")
    covenants = {"min_dscr_ratio": 0.5, "max_ltv_fraction": 0.8}
    asked = {"rent": 1.2, "years": 4, "draws": 20, "financing": "loan", "currency": "EUR", "catalog": catalog()}
    asked |= {"set": covenants}
    compared = gpucost.tco("h100-sxm", 64, **asked)
    compared.to_excel(str(folder / "tco.xlsx"))
    mixed = gpucost.mix([16] * 6 + [32] * 18, gpu="h100-sxm", rent=2.35, catalog=catalog())
    mixed.to_excel(str(folder / "mix.xlsx"))
    for name, answer in (("training", answers.training()), ("serving", answers.serving()), ("sweep", answers.sweep())):
        write_workbook(answer, str(folder / f"{name}.xlsx"))
    return folder, compared.payload, mixed.payload


@cache
def sheets(path):
    from openpyxl import load_workbook

    return load_workbook(path)


def test_a_return_below_nothing_is_a_number_in_the_book_too(books, require_program, tmp_path):
    """At 1.20 owning returns some -22 % a year: it reads so in the book, and the break-even above all hours as none."""
    folder, compared, _ = books
    assert -0.3 < compared["irr_fraction"] < -0.1
    assert compared["breakeven"]["utilisation_fraction"] is None
    found = recalculate(require_program("soffice", "libreoffice"), [folder / "tco.xlsx", folder / "mix.xlsx"], tmp_path)
    summary = {str(row[5]): row[1] for row in found[0].rows("Summary") if len(row) > 5}
    assert summary["irr_fraction"] == pytest.approx(compared["irr_fraction"], abs=1e-6)
    assert summary["breakeven_utilisation_fraction"] == "none"
    master = next(row for row in found[0].rows("Checks") if row[0] == "Master check")
    assert master[1] == "OK"
    cash = {str(row[0]): row[1] for row in found[1].rows("Mix cash") if len(row) > 1}
    assert cash["cost of the mix"] == pytest.approx(books[2]["cost_usd"], abs=0.01)


@pytest.mark.slow
def test_the_first_sentence_follows_the_inputs(books):
    folder, *_ = books
    texts = [cell.value for row in sheets(folder / "tco.xlsx")["Summary"].iter_rows() for cell in row if cell.value]
    live = next(text for text in texts if str(text).startswith("=IF(own_npv_saving_usd>0"))
    assert '"renting"' in live
    assert '"owning"' in live


@pytest.mark.slow
def test_every_sheet_prints_at_8_points_or_more(books):
    """A sheet that does not fit across a page at 73 % is spread over several, 11 points being 8.03 there."""
    folder, *_ = books
    for sheet in sheets(folder / "tco.xlsx"):
        if sheet.sheet_properties.pageSetUpPr is not None and sheet.sheet_properties.pageSetUpPr.fitToPage:
            shown = [dim for dim in sheet.column_dimensions.values() if not dim.hidden]
            letters = [dim for dim in shown if dim.min <= sheet.max_column]
            width = sum((dim.width or 9) * (min(dim.max, sheet.max_column) - dim.min + 1) for dim in letters)
            assert width * 7 * 0.73 <= 1000, sheet.title
        else:
            assert (sheet.page_setup.scale or 100) >= 73, sheet.title


@pytest.mark.slow
def test_the_number_of_gpus_stays_within_its_profile(books):
    """64 GPUs stand in colocation: another number needs another run, so that the cell takes no other."""
    from openpyxl.utils.cell import coordinate_from_string

    folder, *_ = books
    sheet = sheets(folder / "tco.xlsx")["Inputs"]
    (row,) = [cells[0].row for cells in sheet.iter_rows() if cells[-1].value == "gpus"]
    rules = [
        rule
        for rule in sheet.data_validations.dataValidation
        if any(coordinate_from_string(str(cell).split(":")[0])[1] == row for cell in rule.sqref.ranges)
    ]
    assert [(rule.operator, float(rule.formula1)) for rule in rules] == [("equal", 64.0)]


@pytest.mark.slow
def test_cash_has_dates(books):
    folder, compared, _ = books
    flows = [[cell.value for cell in row] for row in sheets(folder / "tco.xlsx")["Cash flows"].iter_rows(max_row=8)]
    assert any(compared["cash_flows"][1]["on"][:7] in row for row in flows)


def test_bars_of_options_begin_at_nothing(books):
    folder, *_ = books
    with zipfile.ZipFile(folder / "tco.xlsx") as packed:
        charts = [packed.read(name).decode() for name in packed.namelist() if "charts/chart" in name]
    (chart,) = [text for text in charts if "every option" in text]
    assert '<c:min val="0"/>' in chart


# numbers that a formula may hold: of calendars and units, digits to round to, thresholds above or below everything,
# where a search for a rate begins, and the coefficients of the series that a spread is taken from
WRITTEN_OUT = {
    "calendar and units": {"12", "1000", "1000000", "3600", "0.0036"},
    "counting and rounding": {"0", "1", "2", "3", "4", "6", "9", "100"},
    "bounds and guesses": {
        "1000000000",
        "1e-09",
        "1e-06",
        "0.001",
        "0.005",
        "0.01",
        "0.05",
        "0.07",
        "0.1",
        "0.15",
        "0.2",
    },
    "series": {"11", "13", "60", "180", "360", "720", "15120"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tco", "mix", "training", "serving", "sweep"])
def test_a_formula_is_short_and_holds_no_pasted_number(books, name):
    folder, *_ = books
    allowed = {float(number) for group in WRITTEN_OUT.values() for number in group}
    for place, cell in live_cells(folder / f"{name}.xlsx").items():
        assert len(cell.text) <= LONGEST, place
        bare = re.sub(r"\"[^\"]*\"|'[^']*'!|[A-Za-z_][A-Za-z0-9_.]*!|\$?[A-Z]{1,3}\$?\d+", " ", cell.text)
        numbers = re.findall(r"(?<![A-Za-z_.\d])\d+\.?\d*(?:[eE][+-]?\d+)?", bare)
        assert {float(number) for number in numbers} <= allowed, (place, cell.text)


@pytest.mark.slow
def test_the_change_log_holds_each_input_as_delivered_and_says_what_was_changed(books, require_program, tmp_path):
    folder, compared, _ = books
    changed = change_inputs(folder / "tco.xlsx", {"rent_usd_per_gpu_hour": 0.9}, tmp_path / "changed.xlsx")
    (found,) = recalculate(require_program("soffice", "libreoffice"), [changed], tmp_path)
    rows = {row[0]: row for row in found.rows("Change log") if len(row) > 4}
    assert [row[1:4] for row in rows.values() if row[3] == "yes"] == [[1.2, 0.9, "yes"]]
    inputs = {row["name"]: row for row in compared["model"]["inputs"]}
    assert len([row for row in rows.values() if row[3] in ("yes", "no")]) == len(inputs)
    assumed = sum(row["status"] == "assumed" for row in inputs.values())
    (counted,) = [row[1] for row in found.rows("Cover") if row[0] == "Inputs"]
    assert re.findall(r"\d+", counted)[:2] == [str(assumed), str(len(inputs))]
    assert counted.endswith("1 changed since")


@pytest.mark.slow
def test_the_workbook_prints_on_some_twelve_pages_with_all_that_decides(books, require_program, tmp_path):
    """Decision, cover, summary, inputs, years and options are printed; months, formulas and machinery are not."""
    folder, *_ = books
    soffice, reader = require_program("soffice", "libreoffice"), require_program("pdftotext")
    command = [soffice, profile(), "--headless", "--convert-to", "pdf", "--outdir", str(tmp_path)]
    subprocess.run([*command, str(folder / "tco.xlsx")], check=True, capture_output=True, timeout=300)
    text = subprocess.run([reader, "-layout", str(tmp_path / "tco.pdf"), "-"], capture_output=True, check=True).stdout
    pages = text.decode().split("\f")[:-1]
    assert 10 <= len(pages) <= 16
    printed = " ".join(" ".join(pages).split())
    for question in SENTENCES:
        assert question in printed
    for heading in ("Change log", "Cash by year", "Statements by fiscal year", "Lender's view", "Budget", "Options"):
        assert heading in printed, heading
    assert not re.search(r"\b(own|rent|cash|book|end)_[a-z_]+_usd\b", printed), "names of formulas are for formulas"
    assert "$-" not in printed
    assert "itwho" not in printed


def test_a_mix_is_alive(books):
    folder, _, mixed = books
    sheet = sheets(folder / "mix.xlsx")["Mix cash"]
    formulas = [cell.value for row in sheet.iter_rows() for cell in row if str(cell.value).startswith("=")]
    assert len(formulas) > len(mixed["cash_by_month"]) * 2


def test_a_page_of_a_mix_stacks_areas_on_a_plain_axis():
    from gpucost.render.mix import document
    from gpucost.render.vega import specification

    payload = gpucost.mix([80] * 6 + [120] * 6, gpu="h100-sxm", rent=2.35, catalog=catalog()).payload
    charts = [block for section in document(payload).sections for block in section.blocks if hasattr(block, "kind")]
    spec = specification(next(chart for chart in charts if chart.kind == "area"))
    stacked = spec["layer"][0]
    assert stacked["mark"]["type"] == "area"
    assert stacked["encoding"]["y"]["stack"] == "zero"
    assert stacked["encoding"]["y"]["axis"]["format"] == ",~r"  # 120, never 1.2e+2


@pytest.mark.parametrize("repayment", ["level", "sculpted"])
def test_the_lender_sheet_is_live_and_equals_the_answer(require_program, tmp_path, repayment):
    """Coverage, debt to value and covenants, recalculated by a spreadsheet, are those of the answer."""
    covenants = {"min_dscr_ratio": 1.2, "max_ltv_fraction": 0.7, "loan_repayment": repayment, "tax_basis": "after"}
    answer = gpucost.tco("h100-sxm", 64, rent=2.8, years=4, draws=0, financing="loan", set=covenants, catalog=catalog())
    answer.to_excel(str(tmp_path / "lender.xlsx"))
    lender = answer.payload["lender"]
    formulas = [cell.value for row in sheets(tmp_path / "lender.xlsx")["Lender"].iter_rows() for cell in row]
    assert sum(str(value).startswith("=") for value in formulas) > 30
    program = require_program("soffice", "libreoffice")
    (found,) = recalculate(program, [tmp_path / "lender.xlsx"], tmp_path / "out")
    rows = {str(row[1]): row for row in found.rows("Lender") if len(row) > 2}
    for at, year in enumerate(lender["years"], 2):
        for name, key in (
            ("serviced_cash_usd", "cash_available_usd"),
            ("debt_service_usd", "debt_service_usd"),
            ("principal_usd", "principal_usd"),
            ("dscr_ratio", "dscr_ratio"),
            ("debt_owed_usd", "debt_owed_usd"),
            ("pledged_value_usd", "resale_value_usd"),
            ("ltv_fraction", "ltv_fraction"),
        ):
            if year[key] is None:  # once the loan is paid back
                assert rows[name][at] in (None, "none"), name
            else:
                assert rows[name][at] == pytest.approx(year[key], rel=1e-9, abs=1e-6), name
    for side, worst in (("dscr_ratio", "lowest_dscr"), ("ltv_fraction", "highest_ltv")):
        unit = side.split("_")[1]
        assert rows[f"worst_{side}"][2:4] == pytest.approx([lender[f"{worst}_{unit}"], lender[f"{worst}_month"]])
    for covenant in lender["covenants"]:
        limit, level, headroom, first, verdict = rows[covenant["name"]][2:7]
        assert (limit, level) == pytest.approx((covenant["limit"], covenant["worst"]))
        assert headroom == pytest.approx(covenant["headroom_fraction"])
        assert first == ("none" if covenant["breached_month"] is None else covenant["breached_month"])
        assert verdict == ("kept" if covenant["breached_month"] is None else "BROKEN")
    master = next(row for row in found.rows("Checks") if row[0] == "Master check")
    assert master[1] == "OK"
