"""One function says what day it is, and everything asks it."""

import ast
import json
import os
import re
import subprocess
import sys
import zipfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import gpucost
from benchmarks.day import fixed_day
from gpucost import clock
from gpucost.answers.common import days_without_prices
from gpucost.catalog import open_catalog, shared
from gpucost.errors import PriceMissingError, UsageError
from gpucost.store.folder import Folder
from tests.commands import in_process
from tests.store.parts import publish, row

pytestmark = pytest.mark.later

ROOT = Path(__file__).resolve().parent.parent
ASKS = {"today", "now", "utcnow", "localtime", "gmtime", "ctime"}
IN_SQL = re.compile(r"\b(?:current_date|current_timestamp|today\(\)|now\(\))", re.IGNORECASE)
DAY = "2027-06-01"  # long after the catalog's day


@pytest.fixture
def another_day(monkeypatch):
    monkeypatch.setenv(clock.VARIABLE, DAY)


def questions_of_the_calendar(path):
    """Yield the lines of a module that ask the computer what day it is, in Python or in SQL."""
    in_product = path.is_relative_to(ROOT / "gpucost")  # what a test or a benchmark asks of SQL is asked as a user may
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asks = node.func.attr in ASKS and ast.unparse(node.func.value) != "clock"
        else:
            text = node.value if in_product and isinstance(node, ast.Constant) else ""
            asks = isinstance(text, str) and bool(IN_SQL.search(text))
        if asks:
            yield node.lineno


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["gpucost", "benchmarks", "tools", "docs", "tests"])
def test_nothing_else_asks_the_computer_what_day_it_is(folder):
    homes = {ROOT / "gpucost/clock.py", Path(__file__).resolve()}
    asked = {path: list(questions_of_the_calendar(path)) for path in (ROOT / folder).rglob("*.py") if path not in homes}
    assert not {str(path.relative_to(ROOT)): lines for path, lines in asked.items() if lines}
    assert list(questions_of_the_calendar(ROOT / "gpucost/clock.py"))


def test_the_day_is_the_one_that_is_set(another_day):
    assert clock.today() == date(2027, 6, 1)
    assert clock.now().date() == date(2027, 6, 1)
    assert clock.now().tzinfo == UTC
    assert abs(clock.instant() - datetime.now(UTC)) < timedelta(minutes=1)


def test_without_a_day_it_is_the_computers(monkeypatch):
    monkeypatch.delenv(clock.VARIABLE)
    assert date.today() - timedelta(days=1) <= clock.today() <= date.today()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01", "20260x"])
def test_what_is_no_day_is_refused_by_the_variable_s_name(monkeypatch, text):
    monkeypatch.setenv(clock.VARIABLE, text)
    with pytest.raises(UsageError, match=clock.VARIABLE):
        clock.today()


def test_questions_are_asked_on_that_day(another_day):
    assert shared.shared_catalog().as_of == date(2027, 6, 1)
    run = gpucost.estimate("8b", "1b", gpu="h100-sxm", gpus=8)
    assert run.payload["as_of"] == DAY
    assert run.payload["prices_age_days"] == (date(2027, 6, 1) - open_catalog().dated).days


def test_programs_that_are_started_ask_on_it_too(another_day):
    code = "from gpucost.catalog import open_catalog; print(open_catalog().as_of)"
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert started.stdout.strip() == DAY


def test_the_tests_ask_on_one_day_whatever_the_calendar_says(request):
    assert clock.today() == fixed_day() + timedelta(days=request.config.getoption("later"))


ASKED = (
    "estimate --model 8b --tokens 100b",
    "inference --model 8b --prompt-tokens 1000 --output-tokens 300 --requests-per-s 5",
    "tco --gpu h100-sxm --gpus 64 --draws 0",
    "mix --constant 64 --months 12 --gpu h100-sxm",
    "choose --purpose fine-tuning --model 8b",
    "audit --model 8b --tokens 1b --gpu h100-sxm --gpus 8 --cost 500",
    "sweep --model 8b --gpu h100-sxm --gpus 8 --tokens 1b",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKED)
def test_long_after_the_catalog_the_first_line_says_that_prices_are_old_and_how_to_refresh(command):
    days = (date.fromisoformat(DAY) - open_catalog().dated).days
    for form in ("table", "md"):
        said = in_process(*command.split(), "--as-of", DAY, "--format", form).stdout.splitlines()[0]
        assert f" {days} days " in said
        assert "gpucost prices refresh" in said
    if not command.startswith("sweep"):
        found = json.loads(in_process(*command.split(), "--as-of", DAY, "--format", "json").stdout)
        assert found["prices_age_days"] == days
    soon = (open_catalog().dated + timedelta(days=60)).isoformat()
    assert "prices refresh" not in in_process(*command.split(), "--as-of", soon).stdout


def test_so_do_lists_of_prices(another_day):
    days = (date.fromisoformat(DAY) - open_catalog().dated).days
    said = in_process("prices", "--gpu", "h100-sxm").stdout.splitlines()[0]
    assert f" {days} days " in said
    assert "gpucost prices refresh" in said


def test_what_holds_no_price_says_nothing_of_prices():
    assert "prices" not in in_process("fit", "--model", "8b", "--gpu", "h100-sxm", "--as-of", DAY).stdout


def test_every_page_and_print_of_an_answer_says_it(tmp_path):
    pytest.importorskip("jinja2")
    run = gpucost.estimate("8b", "1b", gpu="h100-sxm", gpus=8, as_of=DAY)
    run.to_html(tmp_path / "run.html")
    assert "gpucost prices refresh" in (tmp_path / "run.html").read_text("utf-8")
    run.to_excel(tmp_path / "run.xlsx")
    days = (date.fromisoformat(DAY) - open_catalog().dated).days
    with zipfile.ZipFile(tmp_path / "run.xlsx") as book:  # its readers have no command
        assert any(f" {days} days old" in book.read(name).decode() for name in book.namelist() if "sheet1." in name)


@pytest.mark.parametrize("years", [6, 40])
def test_where_every_price_is_too_old_each_question_says_so_each_time(monkeypatch, years):
    monkeypatch.setenv(clock.VARIABLE, str(clock.today() + timedelta(days=365 * years)))
    for _ in range(2):  # the second finds what the first kept
        shared._catalogs.clear()
        with pytest.raises(PriceMissingError, match="gpucost prices refresh"):
            gpucost.estimate("8b", "1b")


def test_refreshed_prices_are_new_prices(tmp_path):
    folder, day = Folder(tmp_path / "store"), clock.today() + timedelta(days=300)
    before = open_catalog(day)
    assert days_without_prices(str(day), before.version) == (day - before.dated).days
    publish(folder, [row(2.5, str(day))], str(day))
    assert days_without_prices(str(day), open_catalog(day, store=folder.path).version) is None
