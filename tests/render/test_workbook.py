"""The workbook: every formula cell holds what Python computes, as delivered and after its inputs were changed."""

import copy
import json
import math
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from xlsxwriter.utility import xl_cell_to_rowcol

import gpucost
from gpucost.formula.spreadsheet import to_excel
from gpucost.render.document import bridge
from gpucost.render.excel import write_workbook
from gpucost.render.wording import without_commands
from gpucost.render.workbook.book import Workbook
from gpucost.render.workbook.live import serving_model, training_model
from gpucost.render.workbook.static import draw
from gpucost.training.cases import recompute
from tests.render import answers
from tests.render.programs import Recalculated, recalculate
from tests.render.sheets import change_inputs, live_cells, sheet_files

TOLERANCE = 1e-9
LEAN_YEARS = 2  # of the plan whose book is copied for every change
LEAN_MONTHS = 36  # of its sheet

# workbook inputs that no request carries -> new values; the same change is made in Python
TRAINING_FACTORS: dict[str, float] = {
    "failures_per_gpu_year": 1.5,
    "failures_per_gpu_year_high": 3.0,
    "ramp_hours": 6.0,
    "restart_hours": 1.0,
    "upfront_usd": 9000.0,
    "recurring_usd_per_hour": 14.0,
    "term_months": 12.0,
    "take_or_pay": 1.0,
    "power_fraction": 0.6,
    "egress_gb": 5000.0,
    "egress_usd_per_gb": 0.09,
}
# inputs of the book and of a whole new question alike, and the scenario that is chosen beside them
OWNERSHIP_CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("base", {
        "months": 36.0, "utilisation_fraction": 0.45, "rent_usd_per_gpu_hour": 3.4, "wacc_fraction": 0.16,
        "server_usd": 320_000.0, "residual_scale_ratio": 0.5, "staff_minimum_fte": 2.0, "facility_basis": "retail",
        "lead_time_months": 4.0, "deposit_fraction": 0.3, "retention_fraction": 0.1, "retention_months": 5.0,
        "refresh_month": 15.0, "refresh_speed_ratio": 2.5, "refresh_price_ratio": 1.4, "refresh_power_ratio": 1.3,
    }),
    ("rent flat", {
        "months": 31.0, "wacc_convention": "nominal", "electricity_usd_per_kwh": 0.21, "pue_ratio": 1.6,
        "financing": "loan", "loan_fraction": 0.7, "loan_rate_fraction": 0.11, "tax_basis": "after",
        "tax_rate_fraction": 0.27, "loss_basis": "carried_forward", "other_income_usd_per_year": 7e5,
        "loss_limit_fraction": 0.8,
    }),
    ("base", {
        "rent_billing": "take_or_pay", "rent_term_months": 12.0, "rent_upfront_fraction": 0.25,
        "lead_time_months": 5.0, "bridge_usd_per_gpu_hour": 4.0, "financing": "lease", "lease_rate_fraction": 0.12,
        "rent_decline_fraction": 0.2,
    }),
    ("rent rises", {
        "financing": "loan", "loan_repayment": "sculpted", "target_dscr_ratio": 1.4, "tax_basis": "after",
        "loan_term_months": 30.0, "min_dscr_ratio": 1.3, "max_ltv_fraction": 0.6, "lead_time_months": 3.0,
        "rent_floor_ratio": 0.8, "rent_cap_ratio": 1.1,
    }),
    ("rent declines", {
        "financing": "lease", "tax_basis": "after", "debt_rate_fraction": 0.09, "loan_rate_fraction": 0.13,
        "colocation_usd_per_kw_month": 240.0, "insurance_fraction": 0.01, "property_tax_fraction": 0.03,
        "sales_tax_fraction": 0.08, "storage_usd_per_gpu": 1500.0, "goodput_fraction": 0.85, "support_fraction": 0.08,
        "rent_staff_ratio": 0.5, "staff_usd_per_fte_year": 210_000.0, "installation_fraction": 0.06,
        "rent_support_fraction": 0.05,
    }),
    ("base", {
        "financing": "operating_lease", "lease_term_months": 18.0, "tax_basis": "after",
        "rent_path_basis": "observed_v", "rent_term_months": 6.0, "rent_billing": "take_or_pay",
        "rent_upfront_fraction": 0.5,
    }),
]  # fmt: skip
# whole new questions: all that they change is typed into the book of the first
TRAINING_ASKED: list[dict[str, Any]] = [
    {"model": "13b", "gpu": "a100-80gb-sxm", "gpus": 16, "option": "spot", "mfu": "50%"},
    {"option": "capacity_block", "tokens": "1t", "precision": "fp8", "overhead": "5%", "experiments": "25%"},
    {"option": "reserved", "dataset": "5TB", "commitment": "used", "as_of": "2026-06-01"},
]
SERVING_ASKED: list[dict[str, Any]] = [
    {"tokens_per_month": None, "utilisation": 0.35},
    {"provider": "aws", "prompt_tokens": 3000, "output_tokens": 500, "precision": "bf16"},
    {"replicas": 3, "redundancy": 2, "gpu": "a100-80gb-sxm"},
]


def differences(path: Path, other: Recalculated) -> list[str]:
    """Compare the values stored beside every formula with those that LibreOffice found."""
    before = live_cells(path)
    sheets = {name: other.rows(name) for name in {name for name, _ in before}}
    found = {(name, place): at(sheets[name], place) for name, place in before}
    return [
        f"{place} {before[place].text[:80]}: {before[place].value!r} {found[place]!r}"
        for place in before
        if not same(before[place].value, found[place])
    ]


def at(rows: list[list[Any]], place: str) -> Any:
    """Return a cell by its address."""
    row, column = xl_cell_to_rowcol(place)
    return rows[row][column]


def same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=TOLERANCE, abs_tol=1e-7)  # what a loan of two millions leaves of nothing
    return bool(one == two)


def named(path: Recalculated) -> dict[str, Any]:
    """Return the values of the sheet Calculations by name."""
    return {row[0]: row[3] for row in texts(path, "Calculations") if len(row) > 3}


def texts(path: Path | Recalculated, sheet: str) -> list[list[Any]]:
    """Return a sheet's rows."""
    if isinstance(path, Recalculated):
        return path.rows(sheet)
    with closing(openpyxl.load_workbook(path, data_only=True, read_only=True)) as book:
        return [list(row) for row in book[sheet].iter_rows(values_only=True)]


@cache
def plan() -> dict[str, Any]:
    """64 H100 over two years: the book that every change is typed into."""
    asked = {"utilisation": "70%", "years": LEAN_YEARS, "rent": 2.35, "draws": 0}
    return gpucost.tco(gpu="h100-sxm", gpus=64, **asked).to_dict()


SCENARIOS = (
    "favourable",
    "adverse",
    "rent V",
    "rent P10",
    "rent P90",
    "contract of 12 months",
)  # as they are; three more stand beside changes, the base is delivered


def chosen(scenario: str) -> str:
    """Return a scenario as the list of the sheet Inputs has it."""
    return f"{scenario[0].upper()}{scenario[1:]}"


def written_books(folder: Path) -> dict[str, Path]:
    """Write the books as delivered."""
    payloads = {
        "training": answers.training(),
        "serving": answers.serving(),
        "ownership": answers.ownership(),
        "lean": without_ends(plan()),
        "pairs": lean_model(pairs()),
    }
    for name, payload in payloads.items():
        write_workbook(payload, str(folder / f"{name}.xlsx"))
    return {name: folder / f"{name}.xlsx" for name in payloads}


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory, require_program: Any) -> dict[str, Any]:
    """Write the books and their changed copies, and recalculate them all in one run of LibreOffice."""
    folder = tmp_path_factory.mktemp("books")
    written = written_books(folder)
    typed = {
        **{
            f"ownership{number}": ("lean", {"Scenario": chosen(name), **change})
            for number, (name, change) in enumerate(OWNERSHIP_CHANGES)
        },
        **{name: ("lean", {"Scenario": chosen(name)}) for name in SCENARIOS},
        **{f"{room}{number}": (room, asked_anew(room, number)[0]) for room in ASKED for number in range(3)},
        "factors": ("training", TRAINING_FACTORS),
        "pairs0": ("pairs", {"utilisation_fraction": 0.4}),
        "toolong": ("lean", {"months": 240.0}),
    }
    copies = [change_inputs(written[of], change, folder / f"{name}.xlsx") for name, (of, change) in typed.items()]
    short = change_inputs(written["lean"], {"financing": "loan", "loan_term_months": 60.0}, folder / "loan.xlsx")
    copies += [plant_fault(short, folder / f"{fault}.xlsx", fault) for fault in FAULTS]
    planted = folder / "planted.xlsx"
    plant(written["training"], planted)
    names = [*(path for name, path in written.items() if name != "lean"), *copies, planted]
    made = recalculate(require_program("soffice", "libreoffice"), names, folder)
    return {
        "written": written,
        "recalculated": dict(zip([path.stem for path in names], made, strict=True)),
        "planted": planted,
    }


# a fault that is planted in the sheet of months -> the check that must find it
FAULTS = {
    "missing_dollar": "the total of owning is the sum of its lines",
    "lasting_debt": "the loan ends at zero",
    "lost_book_value": "the balance sheet balances",
}
_PLANTED = {
    "missing_dollar": ("own_in_cash_usd", lambda text: f"({text})-1"),
    "lasting_debt": ("own_loan_settled_usd", lambda text: "0"),
    "lost_book_value": ("book_hardware_usd", lambda text: f"({text})*0.5"),
}


def plant_fault(path: Path, target: Path, fault: str) -> Path:
    """Copy a book with the formulas of one monthly line falsified."""
    name, change = _PLANTED[fault]
    file = sheet_files(path)["Cash flows"]
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as sink:
        for item in source.namelist():
            data = source.read(item).decode() if item == file else source.read(item)
            if isinstance(data, str):
                row = next(row for row in re.findall(r"<row .*?</row>", data, re.S) if f">{name}<" in row)
                cells = re.sub(r"<f>(?!SUM)([^<]*)</f>", lambda found: f"<f>{change(found[1])}</f>", row)
                assert cells != row
                data = data.replace(row, cells)
            sink.writestr(item, data)
    return target


def without_ends(payload: dict[str, Any]) -> dict[str, Any]:
    """Leave out the inputs' ends and the options' rivals: a book without cases, a tenth of the cells."""
    plain = [{key: value for key, value in row.items() if key != "rival"} for row in payload["options"]]
    return lean_model({**payload, "options": plain})


def lean_model(payload: dict[str, Any]) -> dict[str, Any]:
    """Leave out the inputs' ends, and months that no test reaches."""
    inputs = [{**row, "low": None, "high": None} for row in payload["model"]["inputs"]]
    return {**payload, "model": {**payload["model"], "inputs": inputs, "months": LEAN_MONTHS}}


@cache
def pairs(**changes: Any) -> dict[str, Any]:
    """Own, rent by use, two terms, one that falls back, spot and a hosted API, in euros too."""
    quotes = {"acme": "2.2/h, 12 months, take-or-pay", "bolt": "2.1/h, 24 months, take-or-pay, 20% upfront"}
    plan = {"lead_time_months": 2.0, "tokens_per_s_per_gpu": 900, "utilisation_fraction": 0.7, **changes}
    asked = {"rent": {"": 2.35, **quotes}, "api_price": 1.1, "currency": "EUR", "draws": 100, "set": plan}
    return gpucost.tco(gpu="h100-sxm", gpus=64, years=3, **asked).to_dict()


def plant(path: Path, target: Path) -> None:
    """Copy a book with one stored value falsified."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as sink:
        for name in source.namelist():
            data = source.read(name)
            if name == "xl/worksheets/sheet4.xml":  # Calculations
                text, count = re.subn(r"(</f><v>)[0-9.e+-]+(</v>)", r"\g<1>123456789\g<2>", data.decode(), count=1)
                assert count == 1
                data = text.encode()
            sink.writestr(name, data)


@pytest.mark.parametrize("name", ["training", "serving", "ownership", "pairs"])
def test_libreoffice_finds_in_every_formula_cell_what_python_stored(books: dict[str, Any], name: str) -> None:
    assert len(live_cells(books["written"][name])) > 200
    assert "\n".join(differences(books["written"][name], books["recalculated"][name])) == ""


def test_a_planted_wrong_value_is_found(books: dict[str, Any]) -> None:
    assert differences(books["planted"], books["recalculated"]["planted"])


def test_inputs_that_no_request_carries_give_what_python_gives(books: dict[str, Any]) -> None:
    best = answers.training()["options"][0]
    expected, found = recompute(best["factors"], **TRAINING_FACTORS), named(books["recalculated"]["factors"])
    lines = ("cost_usd", "cost_low_usd", "cost_high_usd", "days", "gpu_hours", "usd_per_mtok", "exposure_usd",
             "cash_usd", "energy_kwh", "kgco2e")  # fmt: skip
    assert [(name, found[name], expected[name]) for name in lines if not like(found[name], expected[name])] == []
    assert found["cost_usd"] != pytest.approx(best["cost_usd"], rel=1e-6)


def test_more_than_forty_inputs_of_each_room_are_held_against_whole_new_answers() -> None:
    owning = {name for _, change in OWNERSHIP_CHANGES for name in change}
    runs = {(room, name) for room in ASKED for number in range(3) for name in asked_anew(room, number)[0]}
    assert len(owning) >= 40
    assert len(runs) >= 40


@pytest.mark.parametrize("number", range(len(OWNERSHIP_CHANGES)))
def test_a_changed_ownership_book_says_all_that_a_whole_new_answer_says(books: dict[str, Any], number: int) -> None:
    name, changes = OWNERSHIP_CHANGES[number]
    (scenario,) = (row["changes"] for row in plan()["scenarios"] if row["name"] == name)
    assert not set(scenario) & set(changes)
    assert "\n".join(unlike(books["recalculated"][f"ownership{number}"], planned({**changes, **scenario}))) == ""


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_figure_of_a_scenario_is_that_of_a_whole_new_answer(books: dict[str, Any], name: str) -> None:
    (scenario,) = (row for row in plan()["scenarios"] if row["name"] == name)
    path = books["recalculated"][name]
    assert "\n".join(unlike(path, planned(scenario["changes"]))) == ""
    shown = next(row for row in texts(path, "Scenarios") if row[1] == "in use, live")
    figures = [scenario[f"{key}_usd"] for key in ("npv_own", "npv_rent", "saving")]
    assert shown[0].lower() == name.lower()
    assert shown[2:5] == pytest.approx([*figures], rel=TOLERANCE)
    assert shown[6] == ("yes" if scenario["buy_wins"] else "no")


def test_the_scenarios_that_can_be_chosen_are_those_of_the_answer() -> None:
    """Each is chosen in a book that is recalculated, but for lives beyond the months of the lean one."""
    chosen_ones = {*SCENARIOS, *(name for name, _ in OWNERSHIP_CHANGES)}
    assert {row["name"] for row in plan()["scenarios"]} == {*chosen_ones, "life of 4 years", "life of 6 years"}


def planned(changes: dict[str, Any]) -> dict[str, Any]:
    """Ask for owning and renting anew, with the inputs of the book's answer and these changes."""
    base = {row["name"]: row["value"] for row in plan()["model"]["inputs"] if row["value"] is not None}
    return gpucost.tco(gpu="h100-sxm", draws=0, plan={"inputs": {**base, **changes}}).to_dict()


def unlike(path: Recalculated, answer: dict[str, Any]) -> list[str]:
    """Return the figures of a book, scalars, months and statements, that are not those of an answer."""
    model, found = answer["model"], named(path)
    pairs = [
        (row["name"], found[row["name"]], row["value"])
        for row in (*model["derived"], *model["answers"])
        if row["value"] is not None
        and not (
            found[row["name"]] == "none" and "breakeven" in row["name"]  # that Python searches
        )
    ]
    flows = {row[0]: row[5:] for row in texts(path, "Cash flows") if row[0]}
    assert len(pairs) > 50
    for line in model["monthly"]:
        pairs += [
            (f"{line['name']} in month {month}", *both)
            for month, both in enumerate(zip(flows[line["name"]], line["values"], strict=False))
        ]
    assert len(pairs) > 100 * LEAN_MONTHS
    pairs += stated(path, answer["statements"])
    return [f"{name}: {one!r} {two!r}" for name, one, two in pairs if not like(one, two)]


def stated(path: Recalculated, statements: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return each figure of the statements by what it is, in a book and in an answer."""
    rows = texts(path, "Statements")
    heads = next(row for row in rows if str(row[0]).startswith("Cash,"))
    return [
        (f"{period['period']} {row[1]}", row[heads.index(period["period"])], period[row[1]])
        for period in (*statements["years"], *statements["quarters"], *statements["months"])
        for row in rows
        if row[1] in period
    ]


def like(one: Any, two: Any) -> bool:
    """Tell whether two figures are one; money of nothing may be a thousandth of a cent."""
    return bool(one == pytest.approx(two, rel=TOLERANCE, abs=1e-5)) if isinstance(two, float) else bool(one == two)


def ask_training(**changes: Any) -> Any:
    asked = {"model": "8b", "tokens": "100b", "gpu": "h100-sxm", "gpus": 64, "top": 1, **changes}
    return training_model(gpucost.estimate(**asked).to_dict(), "", "")


def ask_serving(**changes: Any) -> Any:
    best = answers.serving()["options"][0]
    asked = {**answers.SERVING, "top": 1, "provider": best["provider"], **changes}
    return serving_model(gpucost.inference(**asked).to_dict(), "", "")


# how each is asked, what is asked anew, and the answer of the book
ASKED: dict[str, tuple[Callable[..., Any], list[dict[str, Any]], Callable[[], Any]]] = {
    "training": (ask_training, TRAINING_ASKED, lambda: training_model(answers.training(), "", "")),
    "serving": (ask_serving, SERVING_ASKED, lambda: serving_model(answers.serving(), "", "")),
}


@cache
def asked_anew(room: str, number: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the inputs that a whole new answer changes in the book, and what it says of every line."""
    ask, asked, delivered = ASKED[room]
    model, before = ask(**asked[number]), delivered().starting_values()
    changed = {name: value for name, value in model.starting_values().items() if value != before[name]}
    return changed, dict(model.expected)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("room", ASKED)
def test_a_book_with_the_inputs_of_another_answer_says_all_that_it_says(
    books: dict[str, Any], room: str, number: int
) -> None:
    changes, expected = asked_anew(room, number)
    found = named(books["recalculated"][f"{room}{number}"])
    assert len(changes) >= 2
    assert len(expected) >= 6
    assert [(name, found[name], value) for name, value in expected.items() if not like(found[name], value)] == []


def test_the_master_check_says_ok(books: dict[str, Any]) -> None:
    for name in ("training", "serving", "ownership", "pairs"):
        rows = {row[0]: row[1] for row in texts(books["recalculated"][name], "Checks") if len(row) > 1}
        assert rows["Master check"] == "OK"


def verdicts(path: Recalculated) -> dict[str, Any]:
    """Return the checks of a book by their words, without the model's title."""
    rows = [row for row in texts(path, "Checks") if len(row) > 1 and row[1] in ("OK", "LOOK", "LOOK BELOW")]
    return {str(row[0]).split(": ")[-1]: row[1] for row in rows}


def test_the_checks_hold_under_every_scenario_financing_and_change(books: dict[str, Any]) -> None:
    for name in ("adverse", *(f"ownership{number}" for number in range(len(OWNERSHIP_CHANGES)))):
        assert {key: value for key, value in verdicts(books["recalculated"][name]).items() if value != "OK"} == {}, name


def test_a_comparison_longer_than_its_sheet_is_refused_and_fails_the_checks(books: dict[str, Any]) -> None:
    found = verdicts(books["recalculated"]["toolong"])
    assert (found["the sheet of months holds the whole comparison"], found["Master check"]) == ("LOOK", "LOOK BELOW")
    rules = openpyxl.load_workbook(books["written"]["lean"])["Inputs"].data_validations.dataValidation
    row = next(i for i, line in enumerate(texts(books["written"]["lean"], "Inputs"), 1) if line[-1] == "months")
    (rule,) = [rule for rule in rules if f"D{row}" in rule.sqref]
    assert float(rule.formula2) == LEAN_MONTHS


def test_the_checks_of_a_plan_find_a_line_that_is_missing_or_a_debt_that_stays(books: dict[str, Any]) -> None:
    for fault, check in FAULTS.items():
        found = verdicts(books["recalculated"][fault])
        assert (found[check], found["Master check"]) == ("LOOK", "LOOK BELOW"), fault


def test_the_statements_of_the_workbook_are_those_of_the_answer(books: dict[str, Any]) -> None:
    figures = stated(books["recalculated"]["ownership"], answers.ownership()["statements"])
    assert len(figures) > 500
    assert [row for row in figures if not like(row[1], row[2])] == []


@pytest.mark.parametrize(("name", "titles"), [
    ("comparison of plans", ["Effect of each cause on what owning saves"]),
    ("commitment", ["Commitments by month", "Expiry wall"]),
    ("mix", ["Capacity by month"]),
])  # fmt: skip
def test_an_answer_without_a_live_model_has_native_charts(tmp_path: Path, name: str, titles: list[str]) -> None:
    write_workbook(answers.QUESTIONS[name](), str(tmp_path / "book.xlsx"))
    charts = openpyxl.load_workbook(tmp_path / "book.xlsx")["Charts"]._charts
    assert ["".join(run.t for run in chart.title.tx.rich.p[0].r) for chart in charts] == titles
    assert all(series.val.numRef.f for chart in charts for series in chart.series)


def test_charts_show_small_figures_and_end_with_the_run(tmp_path: Path) -> None:
    """The axis of a price per million tokens shows decimals; a budget is drawn for the months of the run alone."""
    for name in ("inference", "estimate"):
        write_workbook(answers.QUESTIONS[name](), str(tmp_path / f"{name}.xlsx"))
    serving, training = (openpyxl.load_workbook(tmp_path / f"{name}.xlsx") for name in ("inference", "estimate"))
    assert [chart.y_axis.number_format.formatCode for chart in serving["Charts"]._charts] == ["General"]
    assert "Budget" not in serving.sheetnames  # a service has no end over which to spread its cost
    bars = [chart for chart in training["Charts"]._charts if chart.tagname == "barChart"]
    drawn = [series.val.numRef.f for chart in bars for series in chart.series]
    rows = next([int(row) for row in re.findall(r"\d+", place)] for place in drawn if place.startswith("Budget!"))
    cells = live_cells(tmp_path / "estimate.xlsx", "Budget")
    shares = [cells["Budget", f"C{row}"].value for row in range(rows[0], rows[-1] + 1)]
    assert min(shares) > 0
    assert sum(shares) == pytest.approx(1)


def test_a_bar_of_a_bridge_hangs_between_its_ends_also_across_zero(tmp_path: Path) -> None:
    ends = {"part": "a", "usd": 5.0}, {"part": "d", "usd": -4.0}
    hung = bridge("B", ends, [{"part": "b", "usd": 3.0}, {"part": "c", "usd": -12.0}], "part", "usd", "USD")
    book = Workbook(str(tmp_path / "bridge.xlsx"))
    draw(book, book.sheet("S"), hung)
    book.close()
    rows = texts(tmp_path / "bridge.xlsx", "S")
    parts = {row[0]: row[4:8] for row in rows if row[0] in list("abcd")}
    assert parts == {"a": [0, 0, 5, 0], "b": [5, 0, 3, 0], "c": [0, 0, 8, -4], "d": [0, 0, 0, -4]}


@pytest.mark.slow
def test_no_figure_is_wider_than_its_column(tmp_path: Path) -> None:
    """A spreadsheet shows a number that does not fit as a row of hashes."""
    path = tmp_path / "own.xlsx"
    asked = {"gpus": 65_536, "rent": 2.35, "years": LEAN_YEARS, "draws": 0}
    write_workbook(without_ends(gpucost.tco(gpu="h100-sxm", **asked).to_dict()), str(path))
    book = openpyxl.load_workbook(path, data_only=True)
    seen = 0
    for sheet in book:
        widths: dict[int, float] = {}
        for group in sheet.column_dimensions.values():
            for column in range(group.min, group.max + 1):
                widths[column] = group.width
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, (int, float)) and not isinstance(cell.value, bool):
                    seen += 1
                    text = shown_as(float(cell.value), cell.number_format)
                    assert len(text) <= widths.get(cell.column, 8.43), (sheet.title, cell.coordinate, text)
    assert seen > 5000


def shown_as(value: float, pattern: str) -> str:
    """Return the text that a spreadsheet shows of a number, in one of our formats."""
    if "%" in pattern:
        return f"{value:.1%}"
    if pattern == "General" or "E" in pattern:
        return f"{value:.2e}"  # General shortens what does not fit
    if dollars := re.fullmatch(r'"\$"(#,##0(?:\.0+)?)(,,)?("M")?(;.*)?', pattern):
        digits = len(dollars[1].partition(".")[2])
        return f"${value / (1e6 if dollars[2] else 1):,.{digits}f}{'M' if dollars[3] else ''}"
    thousands = pattern.endswith(",")
    value, pattern = (value / 1000, pattern.removesuffix(",")) if thousands else (value, pattern)
    digits = len(pattern.partition(".")[2])
    return f"{value:,.{digits}f}" if "," in pattern else f"{value:.{digits}f}"


@pytest.mark.parametrize(("name", "changes"), [("pairs", {}), ("pairs0", {"utilisation_fraction": 0.4})])
def test_every_option_stands_live_beside_its_closest_rival(
    books: dict[str, Any], name: str, changes: dict[str, Any]
) -> None:
    """LibreOffice finds for each pair what a whole new answer says, and the pick leads to the figures of its option."""
    rows = texts(books["recalculated"][name], "Options")
    heads = next(number for number, row in enumerate(rows) if row[0] == "option")
    table = {row[0]: dict(zip(rows[heads], row, strict=False)) for row in reversed(rows[heads + 1 :]) if row[0]}
    options = pairs(**changes)["options"]
    assert {"own", "rent", "acme", "bolt", "bolt_then_rent", "api"} <= {option["name"] for option in options}
    for option in options:
        row, rival = table[option["name"]], option["rival"]
        assert row["present value"] == pytest.approx(option["npv_usd"], rel=TOLERANCE)
        assert row["closest rival"] == rival["name"]
        assert row["saves against it"] == pytest.approx(rival["saving_usd"], rel=1e-7)
        for head, key in (("break-even price", "usd_per_gpu_hour"), ("break-even use", "utilisation_fraction")):
            found, expected = row[head], rival[f"breakeven_{key}"]
            assert found == ("none" if expected is None else pytest.approx(expected, rel=1e-7)), (option["name"], head)
    if changes:
        return
    for option in options:
        assert table[option["name"]]["wins in the draws"] == option["rival"].get("probability_wins_fraction", "none")
    panel = {row[0]: row[1] for row in rows[:heads] if row[0]}
    picked = min(options, key=lambda option: option["npv_usd"])
    assert panel["option picked"] == picked["name"]
    assert panel["closest rival"] == picked["rival"]["name"]


@pytest.mark.slow
def test_the_options_say_of_which_layer_each_price_is(tmp_path: Path) -> None:
    answer = answers.workload()  # rented at a provider of the catalog
    write_workbook(answer, str(tmp_path / "own.xlsx"))
    rows = texts(tmp_path / "own.xlsx", "Options")
    heads = next(number for number, row in enumerate(rows) if row[1] == "layer")
    listed = takewhile(lambda row: row[0], rows[heads + 1 :])
    table = {row[0]: dict(zip(rows[heads], row, strict=True)) for row in listed}
    priced = {row["name"]: row for row in answer["options"] if row.get("usd_per_gpu_hour") is not None}
    assert set(table) == set(priced)
    assert any("price_kind" in row for row in priced.values())
    for name, row in priced.items():
        assert table[name]["used"] == row["usd_per_gpu_hour"]
        assert (table[name]["contracted"] or None) == row.get("contracted_usd_per_gpu_hour")
        if "price_kind" in row:
            assert table[name]["layer"] == f"{row['price_kind']}, from the {row['price_book']} price book"
            assert table[name]["effective"] == row["effective_usd_per_gpu_hour"]
            assert table[name]["list"] == row["list_usd_per_gpu_hour"]


def test_the_currency_sheet_holds_the_cash_and_the_present_values_of_the_answer(books: dict[str, Any]) -> None:
    rows = {row[0]: row for row in texts(books["recalculated"]["pairs"], "Currency") if row[0]}
    said = pairs()["currency"]
    assert rows["owning, present value in EUR"][1] == pytest.approx(said["npv_own"], rel=TOLERANCE)
    assert rows["renting, present value in EUR"][1] == pytest.approx(said["npv_rent"], rel=TOLERANCE)
    assert rows["owning"][2:6] == pytest.approx([row["own"] for row in said["by_year"]], rel=TOLERANCE)


def test_a_sheet_prints_what_is_read_and_months_beyond_the_plan_are_folded_away(books: dict[str, Any]) -> None:
    book = openpyxl.load_workbook(books["written"]["lean"])
    sheets = [sheet for sheet in book if sheet.title != "Charts"]
    assert all(sheet.print_area for sheet in sheets)
    unprinted = {sheet.title for sheet in sheets if ":" not in sheet.print_area}  # one empty cell far away
    assert {"Cash flows", "Calculations", "Inputs", "Cases"} <= unprinted | {"Cases"}
    assert not {"Decision", "Summary", "Change log", "Cash by year", "Statements"} & unprinted
    flows = book["Cash flows"].column_dimensions
    folded = [group for group in flows.values() if group.hidden]
    assert [(group.min, group.max) for group in folded] == [(6 + 25, 6 + LEAN_MONTHS)]
    levels = {group.outlineLevel for group in book["Statements"].column_dimensions.values() if group.hidden}
    assert {1, 2, 3} <= levels | {1}
    assert all(group.hidden for group in book["Statements"].column_dimensions.values() if group.outlineLevel)


def test_a_workbook_carries_warnings_conventions_and_scenarios(books: dict[str, Any]) -> None:
    answer = answers.ownership()
    said = {str(cell) for row in texts(books["written"]["ownership"], "Cover") for cell in row}
    assert {*map(without_commands, answer["warnings"]), answer["conventions"]} <= said
    shown = {row[0]: row for row in texts(books["written"]["ownership"], "Scenarios")}
    for scenario in answer["scenarios"]:
        assert pytest.approx(scenario["saving_usd"], rel=1e-12) in shown[scenario["name"]]
    assert any("sheet Inputs" in str(name) for name in shown)


def test_static_sheets_know_that_inputs_were_changed(books: dict[str, Any]) -> None:
    assert texts(books["recalculated"]["training"], "Offers")[2][0].startswith("Static: computed")
    assert texts(books["recalculated"]["training0"], "Offers")[2][0].startswith("Static")


def test_no_formula_holds_a_figure_beside_small_whole_numbers(books: dict[str, Any]) -> None:
    for place, cell in live_cells(books["written"]["training"], "Calculations").items():
        bare = re.sub(r'"[^"]*"|[A-Za-z_][A-Za-z0-9_.]*|\$?[A-Z]+\$?\d+', "", cell.text)
        figures = [float(figure) for figure in re.findall(r"\d+\.?\d*(?:[eE][+-]?\d+)?", bare)]
        assert all(figure <= 15120 and figure == int(figure) for figure in figures), (place, cell.text)


def test_an_input_that_no_formula_reads_says_that_it_is_pinned(books: dict[str, Any]) -> None:
    path = books["written"]["ownership"]
    read = {
        name
        for cell in live_cells(path, "Calculations", "Cash flows").values()
        for name in re.findall(r"own_([a-z0-9_]+)", cell.text)
    }
    rows = texts(path, "Inputs")
    head = next(row for row in rows if row[0] == "input")
    at, name = head.index("status"), head.index("name in formulas")
    status = {row[name]: row[at] for row in rows if row is not head and row[at] and row[name]}
    assert {name for name, word in status.items() if word == "pinned"} == (set(status) - read) | {"gpus"}
    assert status["depreciation_method"] == "pinned"


def test_imported_text_never_becomes_a_formula(tmp_path: Path) -> None:
    payload = answers.by_hand()
    nasty = ['=HYPERLINK("http://x","y")', "+1+1", "-2+3", "@SUM(A1)", "{=1+1}", "http://example.org", "mailto:a@b"]
    for row, text in zip(payload["options"] * 4, nasty, strict=False):
        payload["options"].append({**row, "provider": text, "instance_type": text})
    write_workbook(payload, str(tmp_path / "nasty.xlsx"))
    sheet = openpyxl.load_workbook(tmp_path / "nasty.xlsx")["Offers"]
    cells = [cell for row in sheet.iter_rows() for cell in row if cell.value in nasty]
    assert len(cells) == 2 * len(nasty)
    assert all(cell.data_type == "s" and cell.hyperlink is None for cell in cells)


@pytest.mark.slow
def test_no_formula_of_a_saved_answer_reaches_a_workbook(tmp_path: Path) -> None:
    payload = copy.deepcopy(without_ends(plan()))
    hostile = 'where("x\\"&WEBSERVICE(\\"http://example.org\\")&\\"" == "", 1, 2)'
    for part in ("derived", "monthly", "answers"):
        for line in payload["model"][part]:
            line["formula"] = hostile
    write_workbook(payload, str(tmp_path / "own.xlsx"))
    written = live_cells(tmp_path / "own.xlsx")
    assert not [cell.text for cell in written.values() if "WEBSERVICE" in cell.text or "http" in cell.text]
    write_workbook(without_ends(plan()), str(tmp_path / "fresh.xlsx"))
    assert {place: cell.text for place, cell in written.items()} == {
        place: cell.text for place, cell in live_cells(tmp_path / "fresh.xlsx").items()
    }


@pytest.mark.parametrize("stated", [None, "", "0123456789ab"])
def test_an_answer_of_other_formulas_is_refused_in_a_sentence(tmp_path: Path, stated: str | None) -> None:
    payload = answers.ownership()
    payload = {**payload, "model": {**payload["model"], "formulas": stated}}
    with pytest.raises(gpucost.GpuCostError, match="`gpucost tco`"):
        write_workbook(payload, str(tmp_path / "own.xlsx"))
    assert not list(tmp_path.iterdir())


def test_hostile_names_and_choices_are_refused_or_stay_words(tmp_path: Path) -> None:
    payload = copy.deepcopy(without_ends(plan()))
    payload["model"]["inputs"][0]["name"] = 'x"&WEBSERVICE(1)&"'
    with pytest.raises(gpucost.GpuCostError, match="an input called"):
        write_workbook(payload, str(tmp_path / "own.xlsx"))
    payload = copy.deepcopy(without_ends(plan()))
    entry = next(row for row in payload["model"]["inputs"] if any(row["choices"]))
    entry["choices"] = ['x"&WEBSERVICE(1)&"']
    write_workbook(payload, str(tmp_path / "own.xlsx"))
    with zipfile.ZipFile(tmp_path / "own.xlsx") as archive:
        sheets = "".join(archive.read(name).decode() for name in archive.namelist() if "worksheets/sheet" in name)
    assert "<formula1>&quot;x&quot;&quot;&amp;WEBSERVICE(1)&amp;&quot;&quot;&quot;</formula1>" in sheets or (
        '<formula1>"x""&amp;WEBSERVICE(1)&amp;"""</formula1>' in sheets
    )


def test_a_quote_in_a_word_of_a_formula_is_doubled() -> None:
    assert to_excel("where(word == 'a\"b', 1, 2)", str) == 'IF((word="a""b"),1,2)'


def test_a_file_is_replaced_only_by_a_complete_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.xlsx"
    target.write_bytes(b"before")
    monkeypatch.setattr("gpucost.render.workbook.static.write_sources", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_workbook(answers.by_hand(), str(target))
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["report.xlsx"]


def test_an_unwritable_path_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(gpucost.GpuCostError, match="does not exist"):
        write_workbook(answers.by_hand(), str(tmp_path / "none" / "report.xlsx"))


@pytest.mark.slow
def test_many_offers_are_all_written_and_memory_stays_flat(tmp_path: Path) -> None:
    payload = answers.by_hand()
    row = payload["options"][0]
    payload["options"] = [{**row, "rank": rank} for rank in range(1, 2_001)]
    tracemalloc.start()
    write_workbook(payload, str(tmp_path / "many.xlsx"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6  # 1.6 MB in constant memory, 5.6 MB where all cells are kept
    assert [row[1] for row in texts(tmp_path / "many.xlsx", "Offers")[4:]] == list(range(1, 2_001))


@pytest.mark.parametrize("tokens", ["100b", "1t"])
def test_a_small_difference_of_large_sums_is_judged_by_their_size(tmp_path: Path, tokens: str) -> None:
    run = gpucost.estimate("8b", tokens, as_of="2026-11-20").to_json()  # its numbers are shortened
    write_workbook(json.loads(run), str(tmp_path / "run.xlsx"))
    checks = [row for row in texts(tmp_path / "run.xlsx", "Checks") if len(row) > 1]
    assert ["LOOK"] not in [row[1:2] for row in checks]
    assert ["Master check", "OK"] in [row[:2] for row in checks]
