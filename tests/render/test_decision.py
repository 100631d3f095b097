"""The page that a board reads: the same answers in workbook, page, print and slides, and what they rest on."""

import re
import sys
from functools import cache
from html import unescape

import pytest

import gpucost
from gpucost.answers.ownership import TIE
from gpucost.render import evidence
from gpucost.render.build import boarded
from gpucost.render.decision import decision_of, flipping_ratio, mix_page, section
from gpucost.render.document import Chart, KeyFigures
from gpucost.render.text import write as write_text
from tests.money.plans import catalog
from tests.render.programs import profile

AUDITED = [
    "Where does this number come from?",
    "When was it true?",
    "Who changed it?",
    "What is assumed?",
    "Does it add up?",
]
QUESTIONS = ("What do we decide?", "What does it cost this year?", "What if rent halves?", "When does it end?")
ASKED = {"gpu": "h100-sxm", "gpus": 64, "rent": 2.35, "years": 3, "draws": 20}


@cache
def compared(**changes):
    return gpucost.tco(**{**ASKED, **changes}, catalog=catalog())


@cache
def mixed():
    return gpucost.mix([16] * 6 + [32] * 18, gpu="h100-sxm", rent=2.35, catalog=catalog())


def answers_of(payload):
    """Return what the page says to each question."""
    page = section(payload)
    (block,) = [block for block in page.blocks if isinstance(block, KeyFigures) and block.style == "answers"]
    return {fact.label: fact.value for fact in block.items}


def plain(text):
    """Return a text without breaks: a print wraps where it likes."""
    return re.sub(r"\s+", "", text)


# --- What it says.


@pytest.mark.parametrize("financing", ["cash", "loan"])
def test_the_figures_are_those_of_the_answer(financing):
    payload = compared(financing=financing).payload
    decision = decision_of(payload)
    figures = {key: value for key, (_, value) in decision.figures.items()}
    first_year = [row for row in payload["cash_flows"] if row["month"] <= 12]
    best = {"own": "buying", "rent": "renting"}[min(("own", "rent"), key=lambda side: payload["npv_usd"][side])]
    side = "own" if best == "buying" else "rent"
    assert figures["best_noun"] == best
    assert figures["best_less"] == pytest.approx(abs(payload["npv_usd"]["saving"]))
    assert figures["best_year"] == pytest.approx(sum(row[f"{side}_total_usd"] for row in first_year), rel=1e-9)
    assert figures["best_start"] == pytest.approx(payload["cash_flows"][0][f"{side}_total_usd"], rel=1e-9)
    assert figures["end"] == payload["cash_flows"][-1]["on"]
    assert figures["debt_on"] == (None if financing == "cash" else "2029-" + payload["cash_flows"][0]["on"][5:])


def test_what_if_agrees_with_asking_anew():
    """Each case of the page is what the question answers when it is asked with the changed input."""
    decision = decision_of(compared().payload)
    found = {name: rent - own for name, own, rent in decision.what_if}
    server_usd = next(row["value"] for row in compared().payload["assumptions"] if row["name"] == "server_usd")
    anew = {
        "rent halves": compared(rent=1.175),
        "use halves": compared(utilisation=0.35),
        "nothing is resold": compared(set=("residual_scale_ratio=0",)),
        "servers cost half more": compared(set=(f"server_usd={1.5 * server_usd}",)),
    }
    for name, result in anew.items():
        assert found[name] == pytest.approx(result.payload["npv_usd"]["saving"], rel=1e-9, abs=0.01), name


def test_the_price_of_servers_that_changes_our_mind_does():
    """At the price that the page names owning and renting cost the same."""
    decision = decision_of(compared().payload)
    per_gpu = decision.figures["be_server"][1]
    (nodes,) = [row["value"] for row in compared().payload["assumptions"] if row["name"] == "gpus_per_node"]
    at = compared(set=(f"server_usd={per_gpu * nodes!r}",)).payload["npv_usd"]
    assert abs(at["saving"]) < 1e-6 * at["own"]


def test_the_resale_that_changes_our_mind_does():
    """A line through two multiples finds the one at which nothing is saved; 2.0 saves 30, 1.0 saves 10, so 0.5 none."""
    assert flipping_ratio(10.0, 30.0, 2.0) == pytest.approx(0.5)
    decision = decision_of(compared(rent=2.0, years=3).payload)
    share = decision.figures["be_resale"][1]
    if share is not None:
        at = compared(rent=2.0, years=3, set=(f"residual_scale_ratio={share!r}",)).payload["npv_usd"]
        assert abs(at["saving"]) < 1e-6 * at["own"]


def test_the_bridge_leads_from_rent_to_own_and_begins_at_nothing():
    payload = compared(financing="loan", tax="25%").payload
    decision, npv = decision_of(payload), payload["npv_usd"]
    assert npv["rent"] + sum(usd for _, usd in decision.bridge) == pytest.approx(npv["own"], abs=1.0)
    (chart,) = [block for block in section(payload).blocks if isinstance(block, Chart)]
    ends = [row for row in chart.data if row["direction"] == "end"]
    assert [row["low"] for row in ends] == [0.0, 0.0]
    for one, other in zip(chart.data, chart.data[1:-1], strict=False):
        assert {other["low"], other["high"]} & {one["low"], one["high"]}, other  # each hangs at the one before


def test_an_option_beside_the_two_sides_is_recommended_with_its_cash():
    """A quote at a fifth of the rent wins: the page says so, with the cash of its twelve months."""
    quoted = compared(rent=("2.35", "acme=0.5/h, 36 months, take-or-pay"))
    said = answers_of(quoted.payload)
    assert said["What do we decide?"].startswith("Take acme")
    hours = 64 * 730 * 12
    figures = {key: value for key, (_, value) in decision_of(quoted.payload).figures.items()}
    paid = figures["best_year"]
    assert 0.5 * hours <= paid < 0.5 * hours * 1.6, (
        paid
    )  # take-or-pay pays every hour; storage and the like come on top


def test_a_small_plan_is_in_dollars_and_a_large_one_in_millions():
    small = answers_of(gpucost.tco(gpu="rtx-4090", gpus=1, rent=0.4, draws=0, catalog=catalog()).payload)
    large = answers_of(compared(gpus=1024).payload)
    assert "M " not in small["What do we decide?"]
    assert re.search(r"\$\d+\.\dM over", large["What do we decide?"])


# --- Every medium says it on its first page.


PLANS = {  # a server for three years, and a cluster for five on credit
    "small": {"gpus": 8, "years": 3, "rent": None, "draws": 300},
    "large": {"gpu": "b200", "gpus": 1024, "years": 5, "rent": None, "financing": "loan"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("boards")
    for name, result in (*((plan, compared(**asked)) for plan, asked in PLANS.items()), ("mix", mixed())):
        for ending, write in (
            ("xlsx", result.to_excel),
            ("html", result.to_html),
            ("pdf", result.to_pdf),
        ):
            write(str(place / f"{name}.{ending}"))
    return place


@cache
def first_page(path):
    """Return the text of the first page: sheet, screen or paper."""
    if path.suffix == ".pdf":
        from pypdf import PdfReader

        return PdfReader(path).pages[0].extract_text()
    if path.suffix == ".xlsx":
        from openpyxl import load_workbook

        book = load_workbook(path, data_only=True, read_only=True)
        assert book.sheetnames[0] == "Decision"
        return "\n".join(str(cell) for row in book.worksheets[0].iter_rows(values_only=True) for cell in row if cell)
    text = path.read_text(encoding="utf-8")
    body = text[text.index('<section class="board"') : text.index("<nav")]
    return unescape(re.sub("<[^>]*>", " ", body))


def whole_text(path):
    """Return the text of a whole file."""
    if path.suffix == ".pdf":
        from pypdf import PdfReader

        return " ".join(page.extract_text() for page in PdfReader(path).pages)
    if path.suffix == ".xlsx":
        from openpyxl import load_workbook

        sheets = load_workbook(path, data_only=True, read_only=True).worksheets
        chosen = [sheet for sheet in sheets if sheet.title in ("Cover", "Sources")]
        return "\n".join(
            str(cell) for sheet in chosen for row in sheet.iter_rows(values_only=True) for cell in row if cell
        )
    return unescape(re.sub("<[^>]*>", " ", path.read_text(encoding="utf-8")))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLANS, "mix"])
@pytest.mark.parametrize("ending", ["xlsx", "html", "pdf"])
def test_the_questions_of_a_board_are_answered_on_the_first_page(folder, name, ending):
    payload = (mixed() if name == "mix" else compared(**PLANS[name])).payload
    page = plain(first_page(folder / f"{name}.{ending}"))
    for question in QUESTIONS:
        assert plain(question) in page
        assert plain(answers_of(payload)[question]) in page, question


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("ending", ["xlsx", "html", "pdf"])
def test_the_questions_of_an_auditor_are_answered_in_each_medium(folder, name, ending):
    payload = compared(**PLANS[name]).payload
    text = plain(whole_text(folder / f"{name}.{ending}"))
    asked = evidence.answers(payload)
    assert list(asked) == AUDITED
    for question, said in asked.items():
        assert plain(question) in text
        assert plain(said) in text, question
    for source in payload["sources"].values():  # where each number comes from, and when it was true
        assert plain(source["title"]) in text


@pytest.mark.parametrize("name", PLANS)
def test_a_terminal_answers_both_and_calls_a_tie_as_every_medium_does(name):
    result = compared(**PLANS[name])
    details = plain(write_text(result.document(), width=100))
    screen = plain(write_text(result.document(), width=80, one_screen=True))
    for question, said in {**decision_of(result.payload).answers, **evidence.answers(result.payload)}.items():
        assert plain(question) in details
        assert plain(said) in details, question
    for label in ("Answer", "This year", "Half rent", "Assumes"):
        assert plain(label) in screen
    assert plain(result.payload["headline"]) in screen
    assert result.payload["confidence"]["toss_up"] == (name == "small")
    told = (result.payload["lead"], decision_of(result.payload).answers["What do we decide?"])
    before, _, after = TIE.split("{}")
    assert [said.startswith(before) and after in said for said in told] == [name == "small"] * 2


def test_an_auditor_is_told_what_was_given_what_is_assumed_and_that_sums_hold():
    payload = compared(**PLANS["large"]).payload
    said = evidence.answers(payload)
    inputs = [row for row in payload["assumptions"] if row["counts"]]
    without = sum(row["status"] == "assumed" for row in inputs)
    assert said["What is assumed?"].startswith(f"{without} of {len(inputs)} inputs")
    assert "financing loan" in said["Who changed it?"]
    assert "2026-09" in said["When was it true?"]  # the quotes of the server
    assert "Mercatus" in said["Where does this number come from?"]
    assert evidence.gap_usd(payload) < 0.01
    assert said["Does it add up?"].startswith("Yes")
    line = payload["lines"][0]
    broken = {**payload, "lines": [{**line, "npv_usd": line["npv_usd"] + 1.0}, *payload["lines"][1:]]}
    assert evidence.answers(broken)["Does it add up?"].startswith("No")


@pytest.mark.parametrize(("name", "most"), [("small", 4), ("large", 4), ("mix", 2)])
def test_a_print_has_two_pages_for_a_board_and_two_for_an_auditor_in_letters_of_8_points(folder, name, most):
    from pypdf import PdfReader

    sizes = set()
    reader = PdfReader(folder / f"{name}.pdf")
    texts = [
        page.extract_text(visitor_text=lambda text, _cm, tm, _font, size: text.strip() and sizes.add(size * tm[0]))
        for page in reader.pages
    ]
    assert len(reader.pages) <= most
    assert [number for number, text in enumerate(texts) if evidence.TITLE in text] == ([2] if most == 4 else [])
    assert min(sizes) >= 8.0


def test_the_first_sheet_prints_on_two_pages_at_8_points(folder, require_program, tmp_path):
    """LibreOffice prints the book of a mix: two pages are the board's, and no letter on them is below 8 points."""
    import subprocess

    from pypdf import PdfReader

    command = [require_program("soffice", "libreoffice"), profile(), "--headless", "--convert-to", "pdf"]
    subprocess.run(
        [*command, "--outdir", str(tmp_path), str(folder / "mix.xlsx")], check=True, capture_output=True, timeout=300
    )
    pages = PdfReader(tmp_path / "mix.pdf").pages
    sizes = []
    for page in pages[:2]:
        assert "agreed on" in page.extract_text() or "What do we decide?" in page.extract_text()
        page.extract_text(
            visitor_text=lambda text, cm, tm, _font, size: text.strip() and sizes.append(abs(size * tm[3] * cm[3]))
        )
    assert "What do we decide?" not in pages[2].extract_text()
    assert "agreed on" not in pages[2].extract_text()
    assert min(sizes) >= 7.95, min(sizes)


def test_a_print_of_a_page_says_its_size(folder):
    assert "@page { size: A4" in (folder / "small.html").read_text(encoding="utf-8")


def test_the_chart_of_the_first_sheet_is_drawn_from_nothing(folder):
    import zipfile

    with zipfile.ZipFile(folder / "large.xlsx") as packed:
        charts = [packed.read(name).decode() for name in packed.namelist() if "charts/chart" in name]
    (bridge,) = [text for text in charts if "to buying" in text]
    assert "<c:min" not in bridge.replace('<c:min val="0"/>', "")
    assert 'val="stacked"' in bridge


# --- What is missing, and what is no answer.


@pytest.mark.parametrize(("package", "ending", "extra"), [("reportlab", "pdf", "pdf"), ("vl_convert", "pdf", "pdf")])
def test_a_missing_package_is_named_with_its_command(tmp_path, monkeypatch, package, ending, extra):
    from click.testing import CliRunner

    from gpucost.cli import cli

    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    file = tmp_path / f"board.{ending}"
    asked = ["tco", "--gpu", "h100-sxm", "--gpus", "8", "--rent", "2.35", "--draws", "0", "-o", str(file)]
    result = CliRunner().invoke(cli, asked)
    assert getattr(result.exception, "exit_code", None) == 2
    assert f"pip install 'gpucost[{extra}]'" in f"{result.output}{result.exception}"
    assert not file.exists()


def test_a_list_is_no_board(tmp_path):
    from click.testing import CliRunner

    from gpucost.cli import cli

    result = CliRunner().invoke(cli, ["gpus", "-o", str(tmp_path / "gpus.pdf")])
    assert result.exit_code == 2
    assert "not written as .pdf" in result.output


def test_other_answers_are_printed_by_their_sections(tmp_path):
    from pypdf import PdfReader

    result = gpucost.estimate(model="llama-3-8b", tokens="100b", gpu="h100-sxm", catalog=catalog())
    result.to_pdf(str(tmp_path / "run.pdf"))
    text = plain("".join(page.extract_text() for page in PdfReader(tmp_path / "run.pdf").pages))
    assert plain(result.document().title) in text
    assert plain(result.document().lead)[:60] in text


def test_a_scenario_has_the_page_of_each_part():
    payload = {
        "kind": "scenario",
        "name": "both",
        "description": "",
        "warnings": [],
        "sources": {},
        "request": {},
        "as_of": "2026-11-24",
        "catalog_version": "x",
        "schema_version": 2,
        "lead": "",
        "parts": [{"name": "one", "payload": compared().payload}, {"name": "two", "payload": mixed().payload}],
    }
    pages = [part for part in boarded(payload).sections if part.board]
    assert [page.title for page in pages] == ["one: the decision", "one: for an auditor", "two: the decision"]


def test_the_page_of_a_mix_adds_up():
    payload = mixed().payload
    page = mix_page(payload)
    assert sum(usd for _, usd in page.parts) == pytest.approx(payload["cost_usd"], abs=1.0)
    paid = sum(row["total_usd"] for row in payload["cash_by_month"] if row["month"] <= 12)
    assert page.scale.words(paid) in page.answers["What does it cost this year?"]
