"""The formula language: one text, evaluated here and written for a spreadsheet; and the model that carries it."""

import numpy as np
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from gpucost.formula.arrays import evaluate, evaluate_all, needed, payment
from gpucost.formula.language import Line, names
from gpucost.formula.spreadsheet import to_excel
from gpucost.money import cashflow, tax
from gpucost.money.comparison import ALL, OWN_LINES, RENT_LINES
from gpucost.units import unit_of
from tests.money.plans import catalog, compare
from tests.money.test_cashflow import FLOWS, MACRS, worth
from tests.render.programs import recalculate


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "gpus.real",
        "[gpus]",
        "lambda: 1",
        "a if b else c",
        "open('x')",
        "a < b < c",
        "min(a)",
        "where(a, b)",
        "a @ b",
        "f'{a}'",
    ],
)
def test_nothing_outside_the_language_is_evaluated(text):
    with pytest.raises(ValueError, match="formula"):
        evaluate(text, {"a": 1.0, "b": 2.0, "c": 3.0, "gpus": 1.0})


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_evaluation_is_pythons_own_arithmetic(a, b):
    values = {"a": np.array(a), "b": np.array(b)}
    assert evaluate("a + b * 2 - (a - b) / 3", values) == pytest.approx(a + b * 2 - (a - b) / 3)
    assert evaluate("where(a < b and b > 0 or a == 0, min(a, b), max(a, b, 1))", values) == (
        min(a, b) if (a < b and b > 0) or a == 0 else max(a, b, 1)
    )


def test_a_choice_computes_only_its_branch():
    lines = (Line("x", "missing_input + 1", ""), Line("y", "where(kind == 'simple', 1, x)", ""))
    values = {"kind": "simple"}
    evaluate_all(lines, values, ("y",))
    assert values["y"] == 1
    assert [name for name, _ in needed(lines, ("y",), (("kind", "other"),))] == ["x", "y"]


CASES = [
    ("a ** b - -a", {"a": 1.7, "b": 3.0}),
    ("floor(a) + ceil(b)", {"a": 3.7, "b": 2.2}),
    ("interpolate(t, a)", {"a": 1.25}),
    ("interpolate(t, a)", {"a": 9.0}),
    ("interpolate(t, a)", {"a": -1.0}),
    ("lookup(t, a)", {"a": 2.9}),
    ("lookup(t, a)", {"a": 11.0}),
    ("payment(a, 36, 1000, 100)", {"a": 0.01}),
    ("balance(a, 12, 1000, 33.2)", {"a": 0.01}),
    ("payment(a, 36, 1000, 100)", {"a": 0.0}),
    ("balance(a, 12, 1000, 33.2)", {"a": 0.0}),
    ("where(a > 1 and b < 5 or a == 0, log(b), exp(a))", {"a": 1.5, "b": 4.0}),
    ("where(word == 'own', min(a, b), max(a, b))", {"a": 1.0, "b": 2.0, "word": "own"}),
    ("total(row) + sum_product(row, row)", {}),
    ("internal_rate(flow)", {}),
]


@pytest.fixture(scope="module")
def sheets(tmp_path_factory, require_program):
    """The cells of both books below as LibreOffice finds them, in one run; zeros are stored beside the formulas."""
    folder = tmp_path_factory.mktemp("formulas")
    books = [write_cases(folder / "formulas.xlsx"), write_money(folder / "money.xlsx")]
    made = recalculate(require_program("soffice", "libreoffice"), books, folder)
    return [book.rows("Sheet1") for book in made]


TABLES = {"t": [1.0, 0.75, 0.5, 0.4], "row": [3.0, 4.0, 5.0], "flow": [-100.0, 60.0, 70.0]}


def write_cases(path):
    places = {"t": "$A$1:$A$4", "row": "$B$1:$B$3", "flow": "$C$1:$C$3"}
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        for column, values in enumerate(TABLES.values()):
            sheet.write_column(0, column, values)
        for row, (text, inputs) in enumerate(CASES):
            cells = {name: f"{chr(ord('F') + position)}{row + 1}" for position, name in enumerate(inputs)}
            for position, value in enumerate(inputs.values()):
                sheet.write(row, 5 + position, value)
            reference = {**places, **cells}
            sheet.write_formula(row, 4, "=" + to_excel(text, reference.__getitem__), None, 0)
    return path


def test_the_spreadsheet_computes_what_python_computes(sheets):
    arrays = {name: np.array(values) for name, values in TABLES.items()}
    for row, (text, inputs) in enumerate(CASES):
        values = {name: value if isinstance(value, str) else np.array(value) for name, value in inputs.items()}
        found = sheets[0][row][4]
        assert found == pytest.approx(float(evaluate(text, {**arrays, **values})), rel=1e-9), text


def write_money(path):
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_column(0, 0, FLOWS.tolist())
        last = FLOWS.size
        for row, text in enumerate(
            (
                f"=A1+NPV(1.1^(1/12)-1,A2:A{last})",
                f"=IRR(A1:A{last})",
                "=PMT(0.11/12,36,-1950000,0)",
                "=PMT(0.09/12,48,-1000000,100000)",
                "=SLN(2400000,0,5)",
                "=-FV(0.11/12,12,-PMT(0.11/12,36,-1950000,0),1950000)",
                "=VDB(1,0,5,0,0.5,2)",
                "=VDB(1,0,5,0.5,1.5,2)",
            )
        ):
            sheet.write_formula(row, 2, text, None, 0)
    return path


def test_npv_irr_pmt_and_depreciation_equal_libreoffice(sheets):
    found = [row[2] for row in sheets[1][:8]]
    level = float(payment(np.array(0.11 / 12), np.array(36.0), np.array(1.95e6), np.array(0.0)))
    leased = float(payment(np.array(0.09 / 12), np.array(48.0), np.array(1e6), np.array(1e5)))
    owed = evaluate("balance(r, 12, 1950000, p)", {"r": np.array(0.11 / 12), "p": np.array(level)})
    ours = [
        worth(1.1 ** (1 / 12) - 1, FLOWS),
        (1 + cashflow.irr(FLOWS)) ** (1 / 12) - 1,
        level,
        leased,
        2_400_000 * tax.straight_line(5)[0],
        float(owed),
        MACRS[0],
        MACRS[1],
    ]
    assert found == pytest.approx(ours, rel=1e-9)


def test_every_formula_reads_only_what_stands_before_it():
    known = {row["name"] for row in catalog().rows("plan_inputs")} | {
        "m",
        "residual_by_year",
        "depreciated_by_year",
        "assessed_by_year",
        "rent_path_by_month",
        "rent_low_by_month",
        "rent_high_by_month",
        "observed_v_by_month",
        "use_by_month",
    }
    for line in ALL:
        assert set(names(line.text)) <= known, line.name
        assert line.name not in known
        known.add(line.name)


def test_every_line_of_money_says_so_in_its_name_and_is_described():
    for line in (*OWN_LINES, *RENT_LINES):
        assert unit_of(line.name) == "USD"
        assert line.description


def test_every_input_that_has_a_dimension_says_its_unit():
    worded = {row["name"] for row in catalog().rows("plan_choices")}
    for row in catalog().rows("plan_inputs"):
        assert row["name"] in worded or row["unit"], row["name"]
        said = unit_of(row["name"])
        assert not said or said == row["unit"], row["name"]


def test_the_model_in_the_payload_reproduces_the_answer():
    """Whoever evaluates the formulas of a saved answer, one by one, finds the answer."""
    payload = compare(
        financing="loan", tax_basis="after", lead_time_months=2, rent_billing="take_or_pay", rent_term_months=12
    )
    model = payload["model"]
    values = {
        entry["name"]: entry["value"]
        if isinstance(entry["value"], str)
        else np.array(np.nan if entry["value"] is None else entry["value"])
        for entry in model["inputs"]
    }
    values |= {name: np.array(table) for name, table in model["tables"].items()}
    for line in model["derived"]:
        values[line["name"]] = evaluate(line["formula"], values)
    values["m"] = np.arange(model["months"] + 1.0)
    for line in model["monthly"]:
        values[line["name"]] = np.broadcast_to(evaluate(line["formula"], values), values["m"].shape)
    for line in model["answers"]:
        values[line["name"]] = evaluate(line["formula"], values)
        assert line["value"] is None or float(values[line["name"]]) == pytest.approx(line["value"], rel=1e-12, abs=1e-6)
    found = {name: float(values[name]) for name in ("npv_own_usd", "npv_rent_usd")}
    assert found["npv_own_usd"] == pytest.approx(payload["npv_usd"]["own"], rel=1e-12)
    assert found["npv_rent_usd"] == pytest.approx(payload["npv_usd"]["rent"], rel=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lead_time_months": 4.5, "rent_support_fraction": 0.05},
        {"tax_basis": "after", "rent_upfront_fraction": 0.3, "rent_term_months": 12},
        {"bridge_usd_per_gpu_hour": 5.0, "lead_time_months": 6},
        {"power_cap_fraction": 0.5},
    ],
)
def test_closed_break_even_formulas_equal_the_searched_roots(changes):
    payload = compare(rent_usd_per_gpu_hour=2.8, **changes)
    answers = {line["name"]: line["value"] for line in payload["model"]["answers"]}
    assert answers["breakeven_usd_per_gpu_hour"] == pytest.approx(payload["breakeven"]["usd_per_gpu_hour"], rel=1e-9)
    searched = payload["breakeven"]["utilisation_fraction"]
    if searched is not None:
        assert answers["breakeven_utilisation_fraction"] == pytest.approx(searched, rel=1e-9)
    else:
        assert answers["breakeven_utilisation_fraction"] is None
        assert answers["breakeven_use_ratio"] > 1


def test_a_line_that_reads_what_stands_behind_it_is_named():
    lines = (Line("first_usd", "second_usd * 2"), Line("second_usd", "price_usd + 1"))
    with pytest.raises(NameError, match=r"first_usd.*second_usd \* 2"):
        evaluate_all(lines, {"price_usd": 1.0})
