"""The HTML page: one file, nothing fetched, no script error, readable by everyone."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gpucost.errors import UsageError
from gpucost.render import html as writer
from gpucost.render.build import document
from gpucost.render.document import Axis, Chart, Document, Section, Table, columns
from gpucost.render.offers import excluded_table
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


class Tab(NamedTuple):
    """The one tab in which all pages are opened, and what its console said."""

    page: Any
    said: list[str]

    def open(self, page: str, folder: Path, width: int = 1400, scheme: str = "light", media: str = "screen") -> Any:
        """Open a page and all of its parts; return it when its charts are drawn."""
        path = folder / "page.html"
        path.write_text(page, encoding="utf-8")
        self.said.clear()
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme, media="screen")  # nobody opens a page on paper
        self.page.goto(path.as_uri(), wait_until="domcontentloaded")
        self.page.evaluate("document.querySelectorAll('.fold').forEach((part) => { part.open = true; })")
        charts = self.page.locator(".chart")
        if charts.count():
            charts.last.locator("svg.marks").wait_for()
        self.page.emulate_media(color_scheme=scheme, media=media)
        return self.page


@pytest.fixture(scope="module")
def tab(require_program: Any) -> Iterator[Tab]:
    """One tab of one Chromium for all pages."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = require_program("chromium", "chromium-browser", "google-chrome")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=120_000)
        made = Tab(browser.new_page(), [])
        made.page.set_default_timeout(120_000)  # a busy machine draws slowly
        made.page.on("console", lambda message: made.said.append(message.text))
        made.page.on("pageerror", lambda error: made.said.append(str(error)))
        yield made
        browser.close()


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


def test_what_two_pages_leave_out_is_folded_and_a_link_to_it_opens_it(
    tab: Tab, ownership_page: str, tmp_path: Path
) -> None:
    shown = tab.open(ownership_page, tmp_path)
    whole = shown.evaluate("document.documentElement.scrollHeight")
    shown.reload()
    assert shown.evaluate("document.documentElement.scrollHeight") < whole / 2
    closed = shown.locator("details.fold:not([open])")
    before = closed.count()
    shown.evaluate("location.hash = document.querySelector('.fold:has(.chart) h2').id")
    shown.locator(".fold[open] .chart svg.marks").first.wait_for()
    assert closed.count() == before - 1


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_the_browser_draws_every_chart_and_cuts_no_headline_and_no_cost(
    tab: Tab, ownership_page: str, tmp_path: Path, width: int, scheme: str
) -> None:
    shown = tab.open(ownership_page, tmp_path, width, scheme)
    assert tab.said == []
    charts = shown.locator(".chart").count()
    assert charts >= 5
    assert shown.locator(".chart svg.marks").count() == charts
    assert shown.locator('input[type="range"]').count() == 1
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    for place in ("h1", ".lead", ".facts dd"):
        for cut in shown.locator(place).evaluate_all("all => all.map((one) => one.scrollWidth - one.clientWidth)"):
            assert cut <= 0, place
    worth = shown.locator("th", has_text="NPV ($)").first.bounding_box()
    assert worth["x"] >= 0
    assert worth["x"] + worth["width"] <= width


_BROKEN = """all => all.flatMap((cell) => {  // words, not parts of an identifier or address, on two lines
    const found = [], range = document.createRange();
    for (const text of [...cell.childNodes].filter((one) => one.nodeType === 3))
        for (const word of text.data.matchAll(/(?<![\\w\\/.])[A-Za-z]+(?![\\w\\/.])/g)) {
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) found.push(word[0]);
        }
    return found;
})"""
_UNSEEN = """all => all.flatMap((table) => {  // tables of money that show none without scrolling
    const edge = table.parentElement.getBoundingClientRect().right + 1;
    const all = [...table.tHead.rows[0].cells], sums = [...(table.tFoot?.rows[0].cells ?? [])].slice(1);
    const summed = all.filter((_, at) => at && sums[at - 1]?.textContent.trim());
    const heads = summed.length ? summed.slice(0, 1) : all.filter((head) => /\\(\\$\\)$/.test(head.textContent));
    const seen = (one) => one.offsetWidth && one.getBoundingClientRect().right <= edge;
    return !table.offsetWidth || !heads.length || heads.some(seen)
        ? [] : [heads[0].textContent];
})"""


@pytest.mark.parametrize(("name", "width", "media"), [
    ("tco", 390, "screen"), ("tco", 718, "print"), ("mix", 390, "screen"), ("estimate", 390, "screen"),
    ("comparison of plans", 390, "screen"), ("commitment", 390, "screen"), ("inference", 1280, "screen"),
])  # fmt: skip
def test_no_word_is_broken_and_money_is_in_sight(tab: Tab, tmp_path: Path, name: str, width: int, media: str) -> None:
    shown = tab.open(writer.page(document(answers.QUESTIONS[name]())), tmp_path, width, media=media)
    words = shown.locator("th:visible, td:not(.id, .sources td:nth-child(4)):visible, dt, dd")
    assert words.count() > 20
    assert words.evaluate_all(_BROKEN) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width or media == "print"
    assert media == "print" or shown.locator(".wide > table").evaluate_all(_UNSEEN) == []
    if name == "tco" and media == "screen":
        assert shown.locator("th", has_text="status").first.bounding_box()["x"] + 40 < width


def test_a_dark_page_prints_black_on_white(tab: Tab, ownership_page: str, tmp_path: Path) -> None:
    shown = tab.open(ownership_page, tmp_path, 1000, "dark")
    back = "getComputedStyle(document.body).backgroundColor"
    assert shown.evaluate(back) == "rgb(20, 23, 27)"
    shown.emulate_media(media="print", color_scheme="dark")
    assert shown.evaluate(back) == "rgb(255, 255, 255)"
    assert shown.evaluate("getComputedStyle(document.querySelector('.lead')).color") == "rgb(0, 0, 0)"
    fills = "all => all.map((one) => getComputedStyle(one).fill)"
    inside = shown.locator(".heat svg .role-mark > text").evaluate_all(fills)  # on cells of their own colour
    assert len(set(inside)) == 2
    outside = shown.locator(".chart:not(.heat) svg text, .heat svg g:not(.role-mark) > text").evaluate_all(fills)
    assert set(outside) == {"rgb(0, 0, 0)"}
    assert shown.locator('input[type="range"]:visible').count() == 0
    room = "getComputedStyle(document.querySelector('.chart svg.marks')).maxWidth"  # drawn for a screen, put on paper
    assert shown.evaluate(room) == "100%"
    assert shown.locator(".chart svg.marks").evaluate_all("all => all.every((one) => one.hasAttribute('viewBox'))")


def test_no_table_runs_off_the_paper_and_no_column_is_lost(tab: Tab, ownership_page: str, tmp_path: Path) -> None:
    shown = tab.open(ownership_page, tmp_path, 718, media="print")  # A4 between its margins
    heads = "all => all.filter((one) => one.offsetWidth).map((one) => one.textContent)"
    shown.locator("#all-parts").evaluate("one => one.click()")
    before = set(shown.locator("thead th").evaluate_all(heads))
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    ends = shown.locator("table").evaluate_all("all => all.map((one) => one.getBoundingClientRect().right)")
    assert max(ends) <= 718
    assert set(shown.locator("thead th").evaluate_all(heads)) == before
    assert shown.locator("table.part:visible").count() >= 4
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.locator("table.part, table.whole").count() == 0


@pytest.mark.parametrize("name", ["estimate", "inference", "tco", "mix", "choose", "fit"])
def test_paper_holds_the_answer_on_two_pages_and_the_rest_when_asked(tab: Tab, tmp_path: Path, name: str) -> None:
    import gpucost

    more = {
        "choose": lambda: gpucost.choose(budget=50_000).payload,
        "fit": lambda: gpucost.fit("8b", gpu="h100-sxm").payload,
    }
    shown = tab.open(writer.page(document((more.get(name) or answers.QUESTIONS[name])())), tmp_path, 1400)

    def pages() -> int:
        return len(re.findall(rb"/Type\s*/Page\b", shown.pdf(prefer_css_page_size=True)))

    shown.emulate_media(media="print")
    assert pages() <= 2
    rows = "all => all.map((one) => [...one.tBodies[0].rows].filter((row) => row.offsetHeight).length)"
    assert max(shown.locator("main > section table:visible").evaluate_all(rows), default=0) <= writer.ROWS_ON_PAPER
    left = shown.locator(".appendix").count()
    assert shown.locator(".appendix:visible").count() == 0
    shown.emulate_media(media="screen")
    shown.locator("#all-parts").check()
    shown.emulate_media(media="print")
    assert shown.locator(".appendix:visible").count() == left
    assert pages() > 2 or not left
    shown.emulate_media(media="screen")


def test_paper_counts_what_is_not_possible_and_the_screen_lists_it(tab: Tab, tmp_path: Path) -> None:
    rows = [
        {"provider": f"p{n}", "instance_type": "i", "gpu": "l4", "option": "spot", "regions": [], "reason": "too small"}
        for n in range(40)
    ]
    page = writer.page(Document("Serving 8b", (Section("Offers left out, and why", excluded_table(rows)),)))
    shown = tab.open(page, tmp_path, 718)
    listed, counted = (
        shown.locator("td", has_text="p39"),
        shown.locator("p", has_text="40 offers left out; the page on screen"),
    )
    assert (listed.is_visible(), counted.is_visible()) == (True, False)
    shown.emulate_media(media="print")
    assert (listed.is_visible(), counted.is_visible()) == (False, True)


@pytest.mark.parametrize("price", [1.60, 3.40])
def test_the_first_words_of_the_page_follow_the_slider(
    tab: Tab, ownership_page: str, tmp_path: Path, price: float
) -> None:
    import gpucost

    shown = tab.open(ownership_page, tmp_path)
    delivered, slider = answers.ownership()["lead"], shown.locator('input[type="range"]')
    moved = gpucost.tco(gpu="h100-sxm", gpus=64, utilisation="70%", years=4, rent=price, draws=0).payload["lead"]
    assert shown.locator(".lead").inner_text() == delivered
    slider.fill(f"{price:.2f}")
    shown.locator(".lead", has_text=f"${price:.2f}").wait_for()
    said = shown.locator(".lead").inner_text()
    side, by, above = re.match(r"(\w+).+: (\$[\d.,]+M? less) .+ (above .+)", moved).groups()
    assert said.startswith(f"At ${price:.2f} per rented GPU-hour {side.lower()} costs {by} over 4 years (present")
    assert said.endswith(above)
    slider.fill("2.35")
    shown.locator(".lead", has_text=delivered).wait_for()


def test_sorting_and_filtering_work(tab: Tab, page: str, tmp_path: Path) -> None:
    shown = tab.open(page, tmp_path)
    table = shown.locator("table.sortable").first
    cost = table.locator("thead th", has_text="at quote").first
    cost.locator("button").click()
    cost.locator("button").click()
    assert "beta" in table.locator("tbody tr").first.inner_text()  # 3,005 dollars, the highest, after a second click
    assert cost.get_attribute("aria-sort") == "descending"
    shown.locator(f"#{table.get_attribute('id')}-filter").fill("alpha")
    assert table.locator("tbody tr:visible").count() == 1
    assert tab.said == []


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
    writer._library.cache_clear()  # what an earlier page of this process was written with
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


def test_ticks_below_one_are_written_out() -> None:
    """200m days would be read as minutes."""
    import vl_convert

    rows = [{"days": days, "cost_usd": 2000.0 * days} for days in (0.2, 0.5, 3.0)]
    chart = Chart("scatter", "Cost", "Cost against time", rows, Axis("days", log=True), Axis("cost_usd", log=True))
    drawn = html.unescape(vl_convert.vegalite_to_svg({**specification(chart), "width": 600}))
    ticks = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert "0.2" in ticks
    assert not [tick for tick in ticks if re.fullmatch(r"\d+m", tick)]
