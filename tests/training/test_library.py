"""The library's face: `gpucost.estimate(...)` over the shipped catalog."""

import gc
import json
import pickle
import subprocess
import sys
import weakref

import pytest

import gpucost
from gpucost.answers import SCHEMA_VERSION
from gpucost.catalog import Catalog, shared
from gpucost.errors import UsageError


@pytest.fixture(scope="module")
def result():
    return gpucost.estimate(model="llama-3-8b", tokens="100b", gpu="h100-sxm", option="on_demand,spot", top=5)


def test_best_and_lines(result):
    assert result.best["rank"] == 1
    assert result.best == result.options[0]
    assert sum(round(line["cost_usd"] * 100) for line in result.lines) == round(result.best["cost_usd"] * 100)
    assert {line["status"] for line in result.lines} <= {"sourced", "assumed"}
    assert all(line["source_id"] for line in result.lines)


def test_it_becomes_a_frame_text_json_and_a_page(result):
    frame = result.to_frame()
    assert list(frame["rank"]) == list(range(1, result.payload["options_found"] + 1))
    assert frame["cost_usd"].notna().all()
    assert "llama-3-8b" in result.to_text()
    assert json.loads(result.to_json())["kind"] == "estimate"
    assert "<table" in result._repr_html_()


def test_of_what_was_read_for_answers_the_last_is_kept(monkeypatch):
    """A notebook or a server asks again and again, on many days."""

    made, begin = [], Catalog.__init__
    monkeypatch.setattr(shared, "_catalogs", type(shared._catalogs)())
    monkeypatch.setattr(shared, "_MOST", 1)

    def watched(self, *given, **more):
        made.append(weakref.ref(self))
        begin(self, *given, **more)

    monkeypatch.setattr(Catalog, "__init__", watched)
    for ask in (gpucost.estimate, gpucost.inference):
        for day in ("2026-09-01", "2026-10-01"):
            more = {"tokens": "1b"} if ask is gpucost.estimate else {}
            assert ask("8b", gpu="h100-sxm", top=1, as_of=day, **more).best
    gc.collect()
    assert len(made) >= 4
    assert len([one() for one in made if one()]) == 1


def test_every_option_can_be_explained(result):
    for option in result.options:
        assert f"option {option['rank']}" in result.explain(option["rank"])
    with pytest.raises(UsageError, match="no option 99"):
        result.explain(99)


def test_a_result_is_frozen_and_a_catalog_is_reused(result):
    for name in ("payload", "nothing"):
        with pytest.raises(AttributeError, match=name):
            setattr(result, name, {})
    catalog = gpucost.open_catalog()
    first, second = (gpucost.estimate("8b", "10b", catalog=catalog).to_json() for _ in range(2))
    assert first == second


def test_what_is_changed_in_a_copy_leaves_the_answer_as_it_was(result):
    cost = result.best["cost_usd"]
    result.to_dict()["options"][0]["cost_usd"] = 0
    result.best["lines"].clear()
    result.options[0]["layout"].clear()
    result.lines[0]["cost_usd"] = 0
    assert result.best["cost_usd"] == pytest.approx(sum(line["cost_usd"] for line in result.best["lines"]))
    assert result.best["cost_usd"] == cost
    assert result.best["layout"]
    assert result.to_dict() == result.payload


def test_many_layouts_are_one_line_a_key_and_a_copy():
    table = gpucost.throughput(["8b", "70b"], "h100-sxm", [8, 7], tensor=8)
    assert repr(table) == "<ThroughputTable: 2 layouts, 1 with a reason>"
    assert table in {table}
    other = pickle.loads(pickle.dumps(table))
    assert other != table
    assert other.to_frame().equals(table.to_frame())


def test_a_report_of_nothing_is_refused():
    with pytest.raises(UsageError, match="source is missing"):
        gpucost.report(None)


def test_an_unknown_argument_is_named():
    with pytest.raises(UsageError, match="takes no 'gpuz'"):
        gpucost.estimate("8b", "10b", gpuz=3)


def test_the_command_and_the_library_say_the_same(result):
    from click.testing import CliRunner

    from gpucost.cli.question import command_of

    command = command_of("estimate")

    args = [
        "--model",
        "llama-3-8b",
        "--tokens",
        "100b",
        "--gpu",
        "h100-sxm",
        "--option",
        "on_demand,spot",
        "--top",
        "5",
    ]
    shown = CliRunner().invoke(command, [*args, "--format", "json"])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["options"] == json.loads(result.to_json())["options"]


HEAVY = ("pandas", "scipy", "pydantic", "openpyxl", "xlsxwriter", "altair", "rich", "numpy.ma")


def test_the_hot_path_leaves_heavy_packages_unloaded(tmp_path):
    code = f"""
import atexit, sys
atexit.register(lambda: print([name for name in {HEAVY} if name in sys.modules]))
sys.argv = ["gpucost", "estimate", "--model", "8b", "--tokens", "100b", "-o", {str(tmp_path / "out.txt")!r}]
import gpucost.cli
gpucost.cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("wanted", [{"tokens": None}, {"tokens": "1b", "gpus": [8, 16]}, {"tokens": ["1b"]}])
def test_values_of_a_wrong_type_are_refused_in_a_sentence(wanted):
    with pytest.raises(UsageError, match=r"cannot read|is missing"):
        gpucost.estimate("8b", **wanted)


def test_an_empty_column_of_cases_is_refused():
    with pytest.raises(UsageError, match="empty"):
        gpucost.throughput("llama-3-8b", "h100-sxm", [], tensor=[])


def test_every_kind_of_answer_states_one_version_of_the_schema():
    answers = [
        gpucost.estimate("8b", "1b", top=1),
        gpucost.inference("8b", top=1),
        gpucost.fit("8b", "h100-sxm"),
        gpucost.throughput("8b", "h100-sxm", 8),
        gpucost.tco("h100-sxm", 8),
    ]
    assert {answer.payload["schema_version"] for answer in answers} == {SCHEMA_VERSION}


def test_a_stated_overhead_lies_within_its_range():
    stated = gpucost.estimate(model="8b", tokens="1b", gpus=8, overhead="50%", as_of="2026-11-22")
    (row,) = [row for row in stated.payload["assumptions"] if row["name"] == "evaluation_fraction"]
    assert row["low"] <= row["value"] <= row["high"]
    assert row["value"] == 0.5


def test_a_run_of_the_past_is_slower_by_the_stacks_of_its_time():
    asked = {"model": "llama-2-70b", "tokens": "1t", "gpu": "a100-80gb-sxm", "gpus": 512}
    days = [gpucost.estimate(**asked, software_year=year).best["days"] for year in (None, 2024.5, 2021.8)]
    assert days[2] > 1.15 * days[1]
    assert days[0] == pytest.approx(days[1], rel=0.05)
