"""What somebody reads who has no command line: pages and workbooks in words, the picture first, tables in sight."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

from gpucost.render import html as writer
from gpucost.render.build import document
from gpucost.render.document import Chart, Document, Paragraph, Section, Table, columns
from gpucost.render.offers import offers_table, ways
from gpucost.render.wording import for_readers, labelled, without_commands
from tests.render import answers
from tests.render.test_page import tab as tab

pytest.importorskip("vl_convert")

# a flag, or the program's name before one of its commands
_SPOKEN = re.compile(
    r"(?<![\w-])--[a-z]|\bgpucost (?:estimate|inference|tco|mix|fit|prices|calibrate|rerun|report|data)\b"
)
_PROGRAMS = re.compile(r"<(script|style|pre)\b.*?</\1>", re.DOTALL)


def texts(page: str) -> list[str]:
    """Return what a page says, a text for each element, without its programs and its recipes."""
    return [html.unescape(text) for text in re.split(r"<[^>]+>", _PROGRAMS.sub("", page)) if text.strip()]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(answers.QUESTIONS))
def test_no_page_speaks_of_flags_and_commands(name: str) -> None:
    page = writer.page(document(answers.QUESTIONS[name]()))
    said = texts(page)
    assert len(said) > 10
    assert [text for text in said if _SPOKEN.search(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inference", "tco", "scenario"])
def test_no_workbook_speaks_of_flags_and_commands(name: str, tmp_path: Path) -> None:
    import openpyxl

    from gpucost.render.excel import write_workbook

    path = tmp_path / "book.xlsx"
    write_workbook(answers.QUESTIONS[name](), str(path))
    book = openpyxl.load_workbook(path, read_only=True)
    cells = [
        str(cell) for sheet in book.worksheets for row in sheet.iter_rows(values_only=True) for cell in row if cell
    ]
    assert len(cells) > 20
    assert [cell for cell in cells if _SPOKEN.search(cell)] == []


@pytest.mark.parametrize(("text", "said"), [
    ("owes 36 months for a run of 27 days; --option reserved shows it", "owes 36 months for a run of 27 days"),
    ("name your software (--software), give your own speed (--mfu), or run gpucost calibrate",
     "name your software, give your own speed"),
    ("no offer meets 2 days; the fastest takes 20.6 days. Try --deadline 21d or more accelerators.",
     "no offer meets 2 days; the fastest takes 20.6 days."),
    ("36 months -47% to +104% (`gpucost prices forward`)", "36 months -47% to +104%"),
    ("--tokens is missing", "tokens is missing"),
    ("Made by gpucost, offline, from dated facts.", "Made by gpucost, offline, from dated facts."),
])  # fmt: skip
def test_what_names_a_flag_is_left_out_and_the_rest_stays(text: str, said: str) -> None:
    assert without_commands(text) == said


def test_codes_become_labels_and_names_stay() -> None:
    assert labelled("reserved_3y_then_rent") == "reserved 3y then rent"
    assert labelled("lambda, on_demand") == "lambda, on demand"
    for name in ("gpu_8x_b200_sxm6", "model_prices_and_context_window.json", "data/my_file", "Standard_ND96"):
        assert labelled(name) == name
    row = {"instance_type": "cheap_machine", "option": "capacity_block", "note": "see spares_basis"}
    recipe = Paragraph("vllm serve --model x", "code")
    shown = for_readers(Document("t", (Section("s", (Table(columns(*row), [row]), recipe)),), sources={"a_b": {}}))  # type: ignore[typeddict-item]
    table, code = shown.sections[0].blocks
    assert isinstance(table, Table)
    assert dict(table.rows[0]) == {
        "instance_type": "cheap_machine",
        "option": "capacity block",
        "note": "see spares basis",
    }
    assert code is recipe or code == recipe
    assert list(shown.sources) == ["a_b"]


@pytest.mark.parametrize("name", ["estimate", "inference", "comparison", "tco"])
def test_the_picture_stands_before_every_table(name: str) -> None:
    page = writer.page(document(answers.QUESTIONS[name]()))
    body = page[page.index("<main") :]
    first_table = re.search(r'<div class="wide', body)
    assert first_table
    assert body.index("<figure") < first_table.start()
    cards = body.find('<dl class="facts">')
    assert cards == -1 or body.index("<figure") < cards


def points_of(name: str) -> list[dict[str, Any]]:
    return ways(answers.QUESTIONS[name]())


@pytest.mark.parametrize(("name", "cost", "time"), [
    ("estimate", "budget_usd", "days"), ("inference", "budget_usd_per_mtok", "tpot_ms"),
])  # fmt: skip
def test_every_offer_is_a_point_and_nothing_beats_the_front(name: str, cost: str, time: str) -> None:
    answer = answers.QUESTIONS[name]()
    points = ways(answer)
    for row in answer["options"]:
        same = [p for p in points if p["provider"] == row["provider"] and p["gpus"] == row["gpus"]]
        assert any(p[cost] <= row[cost] * (1 + 1e-12) for p in same), row["offer_id"]
    front = [p for p in points if p["front"]]
    assert front
    assert all(p["orderable"] for p in front)
    for point in front:
        better = [p for p in points if p["orderable"] and p[cost] < point[cost] and p[time] < point[time]]
        assert better == []
    chart = next(b for part in document(answer).sections for b in part.blocks if isinstance(b, Chart))
    assert chart.kind == "offers"
    assert len(chart.data) == len(points)


def test_the_cheapest_offer_of_each_region_is_the_cheapest_there() -> None:
    import gpucost

    answer = gpucost.estimate(model="8b", tokens="10b", gpu="h100", gpus=8, all_regions=True, top=0).payload
    rows = {row["region"]: row for row in answer["regions"]}
    by_region: dict[Any, list[Any]] = {}
    for option in answer["options"]:
        by_region.setdefault(option["region"], []).append(option)
    assert set(rows) == set(by_region)
    for region, options in by_region.items():
        assert rows[region]["budget_usd"] == min(option["budget_usd"] for option in options)
        assert rows[region]["offers"] == len(options)


def test_old_prices_are_said_once_and_in_words() -> None:
    rows: list[Any] = [
        {"rank": rank, "age_days": age, "notes": [f"price is {age} days old (limit 7): wider range", "one note"]}
        for rank, age in ((1, 66), (3, 66), (4, 125), (6, 20), (7, 8))
    ]
    (table,) = offers_table(columns("rank"), rows, [])
    first, second = table.note.splitlines()
    assert first.startswith("Offers 1, 3, 4 and 2 more: their prices were seen 8 to 125 days ago")
    assert "their ranges are wider" in first
    assert second == "Offers 1, 3, 4 and 2 more: one note."
    (alone,) = offers_table(columns("rank"), rows[:1], [])
    assert alone.note.splitlines()[0].startswith("Offer 1: its price was seen 66 days ago")


@pytest.mark.parametrize("name", ["estimate", "inference", "comparison", "tco", "fit everywhere"])
def test_tables_fit_1400_pixels_and_name_what_they_fold(tab: Any, tmp_path: Path, name: str) -> None:
    shown = tab.open(writer.page(document(answers.QUESTIONS[name]())), tmp_path, 1400)
    cut = """all => all.filter((one) => one.offsetWidth && one.scrollWidth > one.clientWidth + 1)
        .map((one) => one.getAttribute("aria-label"))"""
    assert shown.locator(".wide").evaluate_all(cut) == []
    more = shown.locator(".more:visible")
    assert all(re.match(r"[1-9]\d* more column", text) for text in more.all_inner_texts())
    assert (
        shown.locator(".more").evaluate_all(
            "all => all.filter((one) => getComputedStyle(one.parentElement).display === 'grid').length"
        )
        == 0
    )
    if name == "tco":
        assert more.count() >= 1
        folded = shown.locator(".folded").count()
        more.first.click()
        assert shown.locator(".more:visible", has_text="Fewer columns").count() == 1
        assert shown.locator(".folded").count() < folded


def test_a_saved_answer_without_points_is_shown_and_rerun_as_before() -> None:
    from gpucost.training.rerun import verdict

    fresh = answers.QUESTIONS["estimate"]()
    saved = {key: value for key, value in fresh.items() if key not in ("offers", "regions")}
    assert "<figure" in writer.page(document(saved))
    assert verdict(saved, fresh)["equal"]  # type: ignore[arg-type]
    moved = {**saved, "options_found": -1}
    assert not verdict(moved, fresh)["equal"]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["estimate", "inference", "comparison", "tco"])
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_pages_pass_the_accessibility_check(tab: Any, tmp_path: Path, name: str, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    shown = tab.open(writer.page(document(answers.QUESTIONS[name]())), tmp_path, width, scheme)
    shown.locator('.chart svg[aria-hidden="true"]').last.wait_for(state="attached")
    violations = axe.Axe().run(shown).response["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in violations] == []
