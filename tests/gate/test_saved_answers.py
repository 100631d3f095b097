"""Saved answers that are strange are refused with a sentence, or read."""

import json
from pathlib import Path

import pytest

import gpucost
from benchmarks.fuzz.good import (
    START,
    answers,
    estimate_with_facts,
)
from gpucost.errors import UsageError
from tests.commands import in_process


@pytest.mark.parametrize("offers", [[{"a": 1}], ["a,b", "1"], ["a,b", '1,"']])
def test_saved_facts_that_are_no_table_are_refused(refused, offers):
    saved = json.loads(estimate_with_facts())
    saved["facts"]["offers"] = offers
    Path("saved.json").write_text(json.dumps(saved))
    assert "facts" in refused(["saved", "rerun", "saved.json", "--accept-changed"])


@pytest.mark.parametrize("missing", ["model", "tokens"])
def test_a_saved_answer_whose_request_says_too_little_is_not_rerun(refused, missing):
    saved = json.loads(estimate_with_facts())
    del saved["request"][missing]
    Path("saved.json").write_text(json.dumps(saved))
    assert missing in refused(["saved", "rerun", "saved.json", "--accept-changed"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokens", 1e308),
        ("epochs", -1),
        ("gpus", 10**30),
        ("sequence_tokens", -1),
        ("lora_rank", 1e308),
        ("mfu_fraction", 0),
        ("tokens_per_s_per_gpu", -1),
        ("step_s", 0),
        ("evaluation_fraction", -1),
        ("storage_gb_per_s", 0),
        ("deadline_days", "x"),
        ("deadline_given", 7),
    ],
)
def test_what_a_saved_request_says_is_held_against_what_may_be_asked(refused, name, value):
    saved = json.loads(estimate_with_facts())
    assert name in saved["request"]
    saved["request"][name] = value
    Path("saved.json").write_text(json.dumps(saved))
    assert f"request.{name}" in refused(["saved", "rerun", "saved.json", "--accept-changed"])


def test_the_difference_of_figures_of_any_size_is_told():
    from gpucost.bridges.compare import difference

    assert difference((1e300, 0.0)) == -1e300
    assert difference((0.125, 2.0)) == 1.88


@pytest.mark.parametrize("systems", [["accelerator_id,gpus"], {"a": 1}])
def test_saved_offers_without_their_nodes_are_refused(refused, systems):
    saved = json.loads(estimate_with_facts())
    saved["facts"]["systems"] = systems
    Path("saved.json").write_text(json.dumps(saved))
    assert "saved facts" in refused(["saved", "rerun", "saved.json", "--accept-changed"])


@pytest.mark.parametrize(
    ("number", "place", "value", "said"),
    [
        (5, ("tokens_per_s_per_gpu",), 0, "compared"),
        (5, ("tokens_per_s_per_gpu",), 5e-324, "compared"),
        (5, ("parts", 0, "bound"), "x", "bound"),
        (8, ("parts", 0, "payload", "sources"), "x", "sources"),
        (8, ("parts", 0, "payload", "options", 0, "layout", "expert"), "x", "layout.expert"),
    ],
)
def test_figures_that_no_answer_has_are_refused_in_a_comparison(refused, number, place, value, said):
    saved = json.loads(answers()[number])
    Path("first.json").write_text(json.dumps(saved))
    part = saved
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    Path("second.json").write_text(json.dumps(saved))
    assert said in refused(["compare", "first.json", "second.json"])


@pytest.mark.parametrize(
    ("name", "value"), [("sold", {}), ("providers", [{"provider": [1]}]), ("architecture", {"mtp_layers": "nan"})]
)
def test_saved_facts_of_other_types_are_refused(refused, name, value):
    saved = json.loads(estimate_with_facts())
    facts = saved["facts"]
    facts[name] = facts[name] | value if isinstance(value, dict) and value else value
    Path("saved.json").write_text(json.dumps(saved))
    assert "saved facts" in refused(["saved", "rerun", "saved.json", "--accept-changed"])


@pytest.mark.parametrize(
    ("number", "place", "said"),
    [(3, ("months", 1), "months"), (2, ("by_year", 1), "by_year")],
)
def test_what_a_saved_answer_lists_is_held_against_its_types(refused, number, place, said):
    saved = json.loads(answers()[number])
    saved[place[0]][place[1]] = {}
    Path("saved.json").write_text(json.dumps(saved))
    assert said in refused(["report", "saved.json", "-o", "out.md"])


@pytest.mark.parametrize("day", ["2026-11-09+1255b0c162a5", "2026-11-09T25:00", "2026-02-30"])
def test_a_saved_day_is_a_day_to_its_last_sign(tmp_path, day):
    saved = gpucost.estimate("8b", "1b", gpu="h100-sxm", gpus=8, top=1).to_dict() | {"as_of": day}
    for use in (lambda: gpucost.export(saved, str(tmp_path / "out.csv")), lambda: gpucost.compare(saved, saved)):
        with pytest.raises(UsageError, match="as_of"):
            use()


def test_a_saved_deadline_of_no_time_is_refused():
    from gpucost.ask import QUESTIONS
    from gpucost.training.request import from_dict

    with pytest.raises(UsageError, match="deadline_days"):
        from_dict({"model": "8b", "tokens": 1e9, "deadline_days": 5e-324}, QUESTIONS["estimate"])


def test_a_part_of_an_answer_that_has_none_is_refused(refused):
    Path("speed.json").write_bytes(answers()[5])
    assert "has no part" in refused(["compare", "speed.json#matrix", "speed.json"])


def test_a_provider_whose_name_ends_lines_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = 'a\rb\nc\r\nd\x85e\u2028f"g,'
    book = {"provider": name, "gpu": "h100-sxm", "gpus": 8, "usd_per_gpu_hour": 1, "valid_from": "2026-01-01"}
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in book.items())
    Path("book.toml").write_text(f"[[offer]]\n{lines}\n", "utf-8")
    monkeypatch.setenv("GPUCOST_BOOK", "book.toml")
    done = in_process("estimate", *START["estimate"], "--gpus", "8", "--format", "json", "-o", "a.json")
    assert done.returncode == 2
    assert "a name" in done.stderr
    assert not Path("a.json").exists()


def test_a_saved_mix_whose_cash_lacks_a_month_is_refused(refused):
    saved = json.loads(answers()[3])
    del saved["cash_by_month"][-1]
    Path("mix.json").write_text(json.dumps(saved))
    assert "cash_by_month" in refused(["saved", "export", "--focus", "mix.json", "-o", "out.csv"])


def test_what_equal_figures_leave_of_each_other_is_no_line():
    asked = {"gpu": "h100-sxm", "gpus": 64, "draws": 0, "financing": "operating_lease", "profile": "lab"}
    made = gpucost.tco(**asked, provider="crusoe").payload
    assert "own_lease_payment_usd" in made["by_year"][0]
    assert not [line for line in made["lines"] if line["name"] == "own_lease_settled_usd"]
    assert "own_lease_settled_usd" not in made["cash_flows"][0]


@pytest.mark.parametrize("name", ["layers", "hidden", "heads", "kv_heads", "max_sequence_tokens"])
def test_a_saved_model_without_a_dimension_is_refused(refused, name):
    saved = json.loads(estimate_with_facts())
    saved["facts"]["architecture"][name] = 0 if name != "max_sequence_tokens" else -1
    Path("saved.json").write_text(json.dumps(saved))
    assert f"architecture.{name} is" in refused(["saved", "rerun", "saved.json", "--accept-changed"])


def test_a_saved_plan_without_an_input_is_no_plan_to_compare_with(refused):
    whole = next(one for one in map(json.loads, answers()) if one["kind"] == "tco")
    Path("whole.json").write_text(json.dumps(whole))
    moved = json.loads(json.dumps(whole))
    del moved["model"]["inputs"][0]
    Path("less.json").write_text(json.dumps(moved))
    assert "model.inputs" in refused(["compare", "less.json", "whole.json"])
    del whole["model"]["tables"]["use_by_month"]
    Path("table.json").write_text(json.dumps(whole))
    assert "use_by_month" in refused(["compare", "table.json", "less.json"])


def written(result, name):
    """Return what a result writes, or its attribute of that name; then its workbook."""
    attribute = getattr(result, name)
    return (attribute() if callable(attribute) else attribute) and result.to_excel("out.xlsx")


@pytest.mark.parametrize("ask", ["to_text", "to_csv", "to_frame", "headline", "explain", "__repr__"])
def test_a_result_of_a_payload_that_is_no_answer_says_so_and_a_fault_of_ours_stays_one(ask, monkeypatch):
    from gpucost.ask.result import Result

    whole = next(one for one in map(json.loads, answers()) if one["kind"] == "fit")
    for payload in ({}, {"kind": "fit"}, {**whole, "kind": "tco"}):
        with pytest.raises(UsageError):
            written(Result(payload), ask)
    monkeypatch.setattr("gpucost.render.build.document", lambda _: {}["components"])
    with pytest.raises(KeyError):
        Result(whole).to_text()


@pytest.mark.parametrize("suffix", ["md", "html", "xlsx"])
def test_a_saved_answer_that_contradicts_itself_is_refused_whatever_breaks(refused, suffix, monkeypatch):
    saved = next(one for one in map(json.loads, answers()) if one["kind"] == "inference")
    Path("saved.json").write_text(json.dumps(saved))
    for place in ("gpucost.render.build.document", "gpucost.render.excel.write_workbook"):
        monkeypatch.setattr(place, lambda *_: {}["options"])  # breaks, as a figure that is missing does
    said = refused(["report", "saved.json", "-o", f"out.{suffix}"])
    assert said.startswith("'saved.json' is inconsistent (")
    assert not Path(f"out.{suffix}").exists()


def test_what_the_command_line_refuses_is_not_blamed_on_the_saved_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = in_process("estimate", "--model", "8b", "--tokens", "1b", "--gpu", "l4", "--format", "json", "-o", "a.json")
    assert made.returncode == 0
    refused = in_process("saved", "rerun", "a.json", "--fields", "rank", "-o", "a.html")
    assert refused.returncode == 2
    assert "leave --fields" in refused.stderr
    assert "is inconsistent" not in refused.stderr
