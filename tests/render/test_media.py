"""The same answer in every medium: the same numbers, readable at any width, safe to open."""

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from gpucost.answers import KINDS
from gpucost.ask.result import Result
from gpucost.errors import UsageError
from gpucost.render import html as page
from gpucost.render import markdown, text
from gpucost.render.build import document, writer_of
from gpucost.render.document import (
    Axis,
    Chart,
    Column,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Section,
    Table,
    columns,
    format_named,
    format_value,
)
from gpucost.render.excel import write_workbook
from gpucost.render.json import dumps
from gpucost.render.rows import render_rows
from gpucost.render.table_csv import rows_csv
from gpucost.render.vega import specification
from tests.render import answers


def media(payload: dict[str, Any]) -> dict[str, str]:
    made = document(payload)
    plain = re.sub(r"<[^>]+>", " ", page.fragment(made))
    return {
        "text": text.write(made, width=240, color=False, unicode=True, all_sections=True),
        "markdown": markdown.write(made).replace("\\", ""),
        "html": html.unescape(plain),
    }


def test_every_medium_shows_the_same_figures() -> None:
    # by hand: 1,000 h x $2 + 50 GB x $0.10 = $2,005; 0.8 and 1.25 times that are 1,604 and 2,506
    shown = media(answers.by_hand())
    for medium, body in shown.items():
        for figure in ("2,005", "1,604", "2,506", "3,005", "2,404", "3,756", "5.25", "41.2%", "2026-11-01"):
            assert figure in body, (medium, figure)


def test_figures_of_pages_are_those_of_json_csv_and_workbook(tmp_path: Path) -> None:
    payload = answers.training()
    options = payload["options"]
    saved = json.loads(dumps(payload))["options"]
    rows = list(csv.DictReader(io.StringIO(rows_csv(payload))))
    write_workbook(payload, str(tmp_path / "book.xlsx"))
    sheet = openpyxl.load_workbook(tmp_path / "book.xlsx", data_only=True)["Offers"]
    grid = [[cell.value for cell in row] for row in sheet.iter_rows(min_row=4)]
    body = media(payload)
    for number, option in enumerate(options):
        cells = dict(zip(range(len(grid[0])), grid[number + 1], strict=True))
        for key, heading in (("cost_usd", "cost (USD)"), ("days", "days"), ("gpu_hours", "GPU hours")):
            value = option[key]
            assert saved[number][key] == pytest.approx(value, rel=1e-11)
            assert float(rows[number][key]) == pytest.approx(value, rel=1e-11)
            assert cells[
                next(place for place, head in enumerate(grid[0]) if head.startswith(heading))
            ] == pytest.approx(value, rel=1e-15)
        for medium in body.values():
            assert format_value(option["cost_usd"], "USD") in medium


def test_a_bill_in_long_form_adds_up() -> None:
    rows = list(csv.DictReader(io.StringIO(rows_csv(answers.training(), lines=True))))
    for option in answers.training()["options"]:
        cents = sum(round(100 * float(row["cost_usd"])) for row in rows if row["rank"] == str(option["rank"]))
        assert cents == round(100 * option["cost_usd"])


def test_columns_are_picked_by_a_text_or_a_list_and_what_is_no_name_is_refused() -> None:
    made = Result(answers.training())
    assert made.written("csv", ["provider", "gpu"]) == made.written("csv", "provider,gpu")
    for strange in (5, [5], {"gpu": 1}):
        with pytest.raises(UsageError, match="fields: found"):
            made.written("csv", strange)
    for nothing in (None, 5):
        with pytest.raises(UsageError, match="title: found"):
            made.chart(nothing)


def test_csv_never_starts_a_cell_like_a_formula() -> None:
    payload = answers.by_hand()
    for sign in "=+-@\t":
        payload["options"][0]["provider"] = f"{sign}cmd|' /C calc'!A0"
        assert next(csv.DictReader(io.StringIO(rows_csv(payload))))["provider"].startswith("'" + sign)
    payload["options"][0]["days"] = -1.5
    assert next(csv.DictReader(io.StringIO(rows_csv(payload))))["days"] == "-1.5"


def test_missing_is_a_dash_and_an_empty_cell_never_zero() -> None:
    payload = answers.by_hand()
    payload["options"][1] |= {"cost_usd": None, "cost_low_usd": None, "cost_high_usd": float("nan"), "lines": []}
    line = next(row for row in text.write(document(payload), width=200, color=False).splitlines() if "beta" in row)
    assert line.count("–") == 4
    assert list(csv.DictReader(io.StringIO(rows_csv(payload))))[1]["cost_usd"] == ""


def test_long_titles_are_wrapped() -> None:
    table = Table(columns("a"), [{"a": 1}], title="a table " * 10)
    made = Document("an answer " * 10, (Section("a section " * 10, (table,)),))
    assert max(map(len, text.write(made, width=40, color=False, all_sections=True).splitlines())) <= 40


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for payload in (answers.by_hand(), answers.training(), answers.ownership()):
        body = text.write(document(payload), width=width, color=False)
        assert max(map(len, body.splitlines())) <= width


def test_a_narrow_terminal_says_which_columns_it_left_out() -> None:
    body = text.write(document(answers.by_hand()), width=60, color=False)
    assert "A wider terminal also shows:" in body
    assert "2,005" in body


def test_colour_comes_only_where_it_is_welcome(monkeypatch: pytest.MonkeyPatch) -> None:
    made = document(answers.by_hand())
    assert "\x1b[" in text.write(made, color=True)
    assert "\x1b[" not in text.write(made)  # captured: no terminal
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in text.write(made)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    made = document(answers.ownership())
    assert text.write(made, width=100, unicode=False).isascii()
    assert not text.write(made, width=100, unicode=True).isascii()


def test_markdown_tables_survive_odd_text() -> None:
    table = Table(columns("provider", "cost_usd"), [{"provider": "a|b\n<i>*x*</i>", "cost_usd": 5.0}])
    lines = markdown.write(Document("t", (Section("s", (table,)),))).splitlines()
    row = next(line for line in lines if line.startswith("| a"))
    assert row == "| a\\|b &lt;i&gt;\\*x\\*&lt;/i&gt; | 5.00 |"


def test_each_kind_has_a_builder_and_other_files_are_refused() -> None:
    for kind in KINDS:
        assert kind == "scenario" or callable(writer_of(kind))
    for strange in ({"rows": []}, {"kind": "other"}):
        with pytest.raises(UsageError, match="`kind`"):
            document(strange)


def test_numbers_are_written_by_their_unit() -> None:
    assert format_named("npv_usd", -1234.4) == "-$1,234"
    assert (
        format_named("usd_per_gpu_hour", 2.345) == "$2.35/GPU-h"
        or format_named("usd_per_gpu_hour", 2.345) == "$2.34/GPU-h"
    )
    assert format_named("tokens", 1.5e12) == "1.5T"
    assert format_named("usd_per_mtok", 0.0123) == "$0.0123/Mtok"
    assert format_named("irr_fraction", None) == "–"
    assert format_value(float("inf")) == "∞"


def test_a_plot_puts_points_where_they_belong() -> None:
    chart = Chart(
        "scatter",
        "t",
        "d",
        [{"days": 1.0, "cost_usd": 10.0}, {"days": 3.0, "cost_usd": 30.0}],
        Axis("days"),
        Axis("cost_usd"),
    )
    body = text.write(Document("t", (Section("s", (chart,)),)), width=60, color=False).splitlines()
    rows = [line.split("│")[1] for line in body if "│" in line]
    assert rows[0].rstrip() == " " * 47 + "o"  # the dearest and longest, top right
    assert rows[-1].rstrip() == "o"


def test_bars_are_as_long_as_their_values() -> None:
    chart = Chart(
        "bar",
        "t",
        "d",
        [{"name": "a", "cost_usd": 100.0}, {"name": "b", "cost_usd": 50.0}],
        Axis("name"),
        Axis("cost_usd"),
    )
    body = text.write(Document("t", (Section("s", (chart,)),)), width=60, color=False, unicode=True)
    assert [line.count("█") for line in body.splitlines() if "█" in line] == [51, 26]


@pytest.mark.parametrize("kind", ["training", "ownership"])
def test_every_chart_is_a_valid_specification(kind: str) -> None:
    altair = pytest.importorskip("altair")
    made = document(getattr(answers, kind)())
    charts = [block for section in made.sections for block in section.blocks if isinstance(block, Chart)]
    assert len(charts) >= 4
    for chart in charts:
        altair.Chart.from_dict(specification(chart)).to_dict()
        assert len(chart.description) > 30


def test_sections_of_detail_wait_until_they_are_asked_for() -> None:
    made = Document(
        "t", (Section("short", (Paragraph("seen"),)), Section("long", (KeyFigures((Fact("a", 1),)),), detail=True))
    )
    assert "long" not in text.write(made)
    assert "long" in text.write(made, all_sections=True)


def test_the_terminal_shows_what_the_golden_file_shows() -> None:
    golden = Path(__file__).parents[1] / "golden" / "document.txt"
    body = text.write(document(answers.by_hand()), width=100, color=False, unicode=True)
    assert body == golden.read_text(encoding="utf-8")


EVIL = "a\x1b[31mred\x07\r\x9b2J\u202eb"


def test_names_cannot_steer_a_terminal_or_reorder_a_line() -> None:
    payload: Any = answers.by_hand()
    payload["options"][0]["provider"] = payload["options"][0]["lines"][0]["name"] = EVIL
    payload["lead"] = payload["warnings"][0] = EVIL
    payload["options"][0]["notes"] = [EVIL]
    payload["request"] |= {"tag": EVIL}
    bodies = {
        **media(payload),
        "csv": rows_csv(payload),
        "long csv": rows_csv(payload, lines=True),
        "json": dumps(payload),
        "request": page.page(document(payload)).rpartition("report</summary>")[2].partition("</pre>")[0],
    }
    for medium, body in bodies.items():
        assert not set("\x1b\x07\r\x9b\u202e") & set(body), medium
        assert ("u001b[31m" if medium in ("json", "request") else "x1b[31m") in body, medium
    assert json.loads(bodies["json"])["lead"] == EVIL  # JSON keeps the name, by its own escapes


def test_lists_cannot_steer_a_terminal_either() -> None:
    for format_ in ("table", "md", "csv", "json"):
        body = render_rows([{"provider": EVIL}], columns=["provider"], format_=format_, envelope={})
        assert not set("\x1b\x07\r\x9b\u202e") & set(body), format_


def test_no_medium_shows_a_secondary_column_without_a_value_and_long_notes_get_room_to_be_few_lines() -> None:
    rows = [{"name": "a", "gpus": 1, "days": None, "note": "word " * 40}, {"name": "b", "gpus": 2, "note": "short"}]
    made = Document(
        "t",
        (Section("", [Table(columns("name", "gpus", Column("days", priority=1), Column("note", priority=2)), rows)]),),
    )
    for body in (page.page(made), markdown.write(made), text.write(made, width=300)):
        assert "days" not in re.sub(r"<(script|style).*?</\1>", "", body, flags=re.S)
        assert "note" in body
    assert page.page(made).count('<td class="longer">word') == 1


def test_a_line_over_time_ends_where_the_plan_ends() -> None:
    chart = next(
        block
        for section in document(answers.ownership()).sections
        for block in section.blocks
        if isinstance(block, Chart) and block.title == "Cash paid so far"
    )
    across = specification(chart)["layer"][0]["encoding"]["x"]
    assert max(row["month"] for row in chart.data) == 48
    assert across["scale"]["nice"] is False


def test_a_workbook_without_inputs_speaks_of_none_and_has_no_empty_sheet(tmp_path: Path) -> None:
    payload = answers.QUESTIONS["commitment"]()
    write_workbook(payload, str(tmp_path / "book.xlsx"))
    book = openpyxl.load_workbook(tmp_path / "book.xlsx")
    assert not {"Inputs", "Assumptions", "Sources"} & set(book.sheetnames)
    words = [str(cell.value) for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert not [text for text in words if "inputs_changed" in text or "sheet Inputs" in text]
    sheet = book[book.sheetnames[2]]
    assert sheet["A3"].value == payload["lead"]
    room = sum(sheet.column_dimensions[letter].width for letter in "ABCDEFGH")
    assert sheet.row_dimensions[3].height / 15 * room * 0.8 > len(payload["lead"])  # words leave a fifth of each line


@pytest.mark.slow
def test_the_log_of_assumptions_names_each_once(tmp_path: Path) -> None:
    write_workbook(answers.ownership(), str(tmp_path / "book.xlsx"))
    sheet = openpyxl.load_workbook(tmp_path / "book.xlsx")["Assumptions"]
    names = [row[1].value for row in sheet.iter_rows(min_row=4)]
    assert len(names) == len(set(names)) > 100


@pytest.mark.parametrize(("width", "kept", "gone"), [(80, {"www", "yes"}, ""), (50, {"www"}, "narrow"),
                                                     (24, {"yes"}, "wide"), (20, set(), "wide, narrow")])  # fmt: skip
def test_a_narrow_column_takes_the_place_of_a_wide_one_that_had_to_go(width: int, kept: set[str], gone: str) -> None:
    table = Table(
        columns("name", Column("wide", priority=2), Column("narrow", priority=3)),
        [{"name": "n" * 16, "wide": "w" * 30, "narrow": "yes"}],
    )
    said = " ".join(text.write(Document("", [Section("", [table])]), width=width, color=False).split())
    assert {word for word in ("www", "yes") if word in said} == kept
    assert ("A wider terminal" in said) == bool(gone)
    assert said.endswith(f"{gone}." if gone else "yes")


def test_where_colours_come_again_points_differ_in_their_sign() -> None:
    rows = [{"days": n + 1.0, "cost_usd": n + 1.0, "gpu": f"g{n}"} for n in range(9)]
    axes = Axis("days", log=True), Axis("cost_usd", log=True)
    for shown, signs in ((rows, True), (rows[:7], False)):
        drawn = specification(Chart("scatter", "t", "d", shown, *axes, series="gpu"))["layer"][0]["encoding"]
        assert ("shape" in drawn) is signs
        assert drawn["x"]["scale"]["nice"] is False  # no empty decade beside the data


def test_a_heading_without_rows_sends_no_sign_to_the_terminal():
    written = render_rows([], columns=["a\x0cb", "c"], format_="csv", fields="a\x0cb,c", envelope={})
    assert written.endswith(",c\n")
    assert "\x0c" not in written
