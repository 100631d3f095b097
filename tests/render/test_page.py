"""The HTML page: one file, nothing fetched, no script error, readable by everyone."""

import html
import json
import re
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gpucost.errors import UsageError
from gpucost.render import html as writer
from gpucost.render.build import document
from gpucost.render.document import Axis, Chart, Document, Section, Table, columns
from gpucost.render.vega import specification
from tests.render import answers

pytest.importorskip("vl_convert")


class Outline(HTMLParser):
    """Collects the tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page() -> str:
    return writer.page(document(answers.by_hand()))


@pytest.fixture(scope="module")
def ownership_page() -> str:
    return writer.page(document(answers.ownership()))


@pytest.fixture(scope="module")
def chromium(require_program: Any) -> str:
    return str(require_program("chromium", "chromium-browser", "google-chrome"))


def chrome(program: str, page: str, folder: Path, *options: str) -> tuple[str, list[str]]:
    """Open a page in headless Chromium; return the document after its scripts ran, and every console line."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--virtual-time-budget=8000", "--enable-logging=stderr", "--v=0", *options, "--dump-dom", path.as_uri()]
    run = subprocess.run(command, check=True, capture_output=True, timeout=180, text=True)
    return run.stdout, [line for line in run.stderr.splitlines() if "CONSOLE" in line]


def with_script(page: str, script: str) -> str:
    """Add a script at the very end of the page."""
    head, end, tail = page.rpartition("</body>")
    return f"{head}<script>{script}</script>{end}{tail}"


def test_nothing_outside_the_file_is_referenced(page: str, ownership_page: str) -> None:
    for text in (page, ownership_page):
        outline = Outline(text)
        for tag, attributes in outline.tags:
            for key in ("src", "href", "action", "data"):
                value = attributes.get(key) or ""
                assert not value or value.startswith("#") or value == "data:,", (tag, value)
        assert "default-src 'none'" in text
        assert "@import" not in text
        assert len(text.encode()) < 2_000_000


def test_the_browser_draws_every_chart_without_a_word(chromium: str, ownership_page: str, tmp_path: Path) -> None:
    dom, console = chrome(chromium, ownership_page, tmp_path)
    assert console == []
    charts = dom.count('class="chart')
    assert charts >= 5
    assert len(re.findall(r'<svg[^>]*class="marks"', dom)) == charts
    assert len(re.findall(r'<input[^>]*type="range"', dom)) == 1


def test_sorting_and_filtering_work(chromium: str, page: str, tmp_path: Path) -> None:
    steps = """
      const table = document.getElementById("table-1"), heads = [...table.tHead.rows[0].cells];
      const cost = heads.findIndex((head) => head.textContent.startsWith("cost"));
      table.tHead.rows[0].cells[cost].querySelector("button").click();
      table.tHead.rows[0].cells[cost].querySelector("button").click();
      const first = table.tBodies[0].rows[0].textContent;
      const input = document.getElementById("table-1-filter");
      input.value = "alpha"; input.dispatchEvent(new Event("input"));
      const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
      const seen = JSON.stringify([first, shown, heads[cost].getAttribute("aria-sort")]);
      document.body.append(Object.assign(document.createElement("pre"), {id: "seen", textContent: seen}));
    """
    dom, console = chrome(chromium, with_script(page, steps), tmp_path)
    assert console == []
    first, shown, order = json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', dom)[1]))  # type: ignore[index]
    assert "beta" in first  # 3,005 dollars, the highest, after a second click
    assert shown == 1
    assert order == "descending"


def test_a_phone_does_not_scroll_sideways(chromium: str, ownership_page: str, tmp_path: Path) -> None:
    measure = (
        'setTimeout(() => document.body.append(Object.assign(document.createElement("pre"), {id: '
        '"seen", textContent: document.documentElement.scrollWidth + " " + innerWidth})), 3000)'
    )
    dom, _ = chrome(chromium, with_script(ownership_page, measure), tmp_path, "--window-size=500,900")
    wide, window = map(int, re.search(r'<pre id="seen">(\d+) (\d+)</pre>', dom).groups())  # type: ignore[union-attr]
    assert wide <= window


def test_landmarks_headings_and_names_are_in_order(page: str) -> None:
    outline = Outline(page)
    counted = Counter(tag for tag, _ in outline.tags)
    assert (
        counted["main"]
        == counted["header"]
        == counted["footer"]
        == counted["nav"]
        == counted["h1"]
        == counted["title"]
        == 1
    )
    assert outline.all("html")[0]["lang"] == "en"
    ids = [attributes["id"] for _, attributes in outline.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for tag, attributes in outline.tags:
        if attributes.get("aria-labelledby"):
            assert attributes["aria-labelledby"] in ids, tag
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids, attributes["href"]  # type: ignore[index]
    labels = {attributes["for"] for attributes in outline.all("label")}
    assert {attributes["id"] for attributes in outline.all("input")} <= labels
    assert all(attributes.get("scope") for attributes in outline.all("th"))
    for attributes in outline.all("div"):
        if attributes.get("role") == "img":
            assert len(attributes["aria-label"] or "") > 20


def luminance(color: str) -> float:
    channels = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    """WCAG 2.2: (lighter + 0.05) / (darker + 0.05)."""
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_text_is_that_of_wcag_aa_in_both_themes() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    style = Path(writer.__file__).parent.joinpath("assets", "page.css").read_text(encoding="utf-8")
    themes = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", line)) for line in style.splitlines()[:2]]
    for theme in themes:
        for ink, paper in (
            ("ink", "page"),
            ("ink", "card"),
            ("soft", "page"),
            ("soft", "card"),
            ("link", "page"),
            ("link", "card"),
            ("warn", "warn-back"),
        ):
            assert contrast(theme[ink], theme[paper]) >= 4.5, (ink, paper, theme)


def test_markup_in_data_stays_text() -> None:
    nasty = '</script><script>alert("x")</script><b>bold</b>'
    table = Table(
        columns("provider", "cost_usd"), [{"provider": nasty, "cost_usd": 1.0}], title=nasty, interactive=True
    )
    chart = Chart("bar", nasty, nasty, [{"provider": nasty, "cost_usd": 1.0}], Axis("provider"), Axis("cost_usd"))
    made = writer.page(
        Document(
            nasty,
            (Section(nasty, (table, chart)),),
            lead=nasty,
            warnings=(nasty,),
            request={"model": nasty},
            sources={nasty: {"title": nasty}},
        )
    )
    outline = Outline(made)
    assert not outline.all("b")
    assert len(outline.all("script")) == 4  # one chart, the colours, the library, the page's own


def test_a_source_stands_behind_the_figure(page: str) -> None:
    assert '<a href="#source-1" title="Alpha, Price list, 2026-11-01"' in page
    assert '<tr id="source-1">' in page
    assert "https://alpha.example/prices" in page


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"pip install 'gpucost\[report\]'"):
        writer.page(document(answers.by_hand()))


def test_a_notebook_shows_facts_and_tables_without_scripts() -> None:
    made = writer.fragment(document(answers.by_hand()))
    assert "<script" not in made
    assert "2,005" in made


def charts_of(answer: dict[str, Any], kind: str) -> list[Chart]:
    blocks = (block for section in document(answer).sections for block in section.blocks)
    return [block for block in blocks if isinstance(block, Chart) and block.kind == kind]


@pytest.mark.parametrize("price", [1.60, 2.35, 3.40])
def test_the_words_of_the_break_even_chart_follow_its_slider(price: float) -> None:
    import vl_convert

    import gpucost

    chart = next(chart for chart in charts_of(answers.ownership(), "line") if chart.sliders)
    spec = specification(chart)
    spec["params"][0]["value"] = price
    drawn = html.unescape(vl_convert.vegalite_to_svg({**spec, "width": 600}))
    moved = gpucost.tco(gpu="h100-sxm", gpus=64, utilisation="70%", years=4, rent=price, draws=0).payload
    crossing = moved["breakeven"]["utilisation_fraction"]
    said = "renting is cheaper at any use" if crossing is None else f"the lines cross at {crossing:.1%}"
    assert f"At ${price:.2f} per GPU-hour {said}" in drawn


def test_a_heat_map_holds_its_numbers_and_the_line_where_the_sign_changes() -> None:
    import vl_convert

    data = [{"x": x, "y": y, "usd": usd} for y, row in (("b", (-1e6, 2e6)), ("a", (-3e6, -4e6)))
            for x, usd in zip(("1", "2"), row, strict=True)]  # fmt: skip
    spec = specification(Chart("heat", "t", "d", data, Axis("x"), Axis("y"), value="usd"))
    drawn = html.unescape(vl_convert.vegalite_to_svg({**spec, "width": 300}))
    assert all(f">{text}<" in drawn for text in ("−$1M", "$2M", "−$3M", "−$4M"))
    edges = [
        (row["x"], row["y"], row["edge"])
        for layer in spec["layer"]
        if "data" in layer
        for row in layer["data"]["values"]
    ]
    assert sorted(edges) == [("2", "a", "above"), ("2", "b", "before")]
    assert drawn.count('stroke-width="2.5"') == 2


def test_cash_by_year_has_a_year_a_column_and_keeps_its_figures() -> None:
    answer = answers.ownership()
    section = next(part for part in document(answer).sections if part.title == "Cash by year")
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["line", *(f"year {year}" for year in range(5))]
    rows = {row["line"]: row for row in table.rows}
    assert [rows["rent total"][f"year_{row['year']}"] for row in answer["by_year"]] == [
        row["rent_total_usd"] for row in answer["by_year"]
    ]
