"""`gpucost diff`: what changed between two answers, of which kind, and exit codes by budget."""

import json

import pytest
from click.testing import CliRunner

import gpucost
from gpucost.cli.diff import command
from tests.money.plans import catalog


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    for name, tokens in (("old", "100b"), ("new", "150b")):
        answer = gpucost.estimate(model="8b", tokens=tokens, gpu="h100-sxm", gpus=8, catalog=catalog())
        (folder / f"{name}.json").write_text(answer.to_json())
    return str(folder / "old.json"), str(folder / "new.json")


def run(*arguments):
    return CliRunner().invoke(command, arguments)


def test_a_comment_names_the_kind_of_each_cause_and_its_effects_add_up(saved):
    found = json.loads(run(*saved, "--format", "json").stdout)
    assert found["after"] - found["before"] == pytest.approx(sum(row["effect"] for row in found["rows"]), abs=0.02)
    assert {row["kind"] for row in found["rows"]} == {"workload"}
    text = run(*saved, "--format", "github").stdout
    assert text.startswith(f"### GPU cost: +${found['change']:,.2f} (+")
    assert "| workload | tokens | 100B | 150B |" in text
    assert f"{found['days'][1] - found['days'][0]:+.2f} days" in text


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ([], 0),
        (["--budget", "1e9"], 0),
        (["--budget", "100"], 3),
        (["--most-rise", "10%"], 3),
        (["--most-rise", "60%"], 0),
    ],
)
def test_the_exit_code_says_whether_a_budget_holds(saved, limit, code):
    from gpucost.errors import OverBudgetError

    result = run(*saved, "--format", "github", *limit)
    if code:
        assert isinstance(result.exception, OverBudgetError)
        assert result.exception.exit_code == code
        assert "[!CAUTION]" in result.stdout
    else:
        assert result.exit_code == 0, result.output
        assert "[!CAUTION]" not in result.stdout


def test_equal_answers_are_unchanged(saved):
    text = run(saved[0], saved[0], "--format", "github").stdout
    assert text.startswith("### GPU cost: unchanged")


def test_what_an_answer_holds_cannot_break_the_table():
    from gpucost.library.diff import AnswerDifference, as_github

    found = AnswerDifference(
        "a run", "cost_usd", 1.0, 2.0, None, (("model", "a|b\n<b>", "1", "2", 1.0),), ("<script>",)
    )
    text = as_github(found)
    assert "a\\|b &lt;b>" in text
    assert "<script>" not in text
