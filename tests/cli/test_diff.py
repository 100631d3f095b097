"""`gpucost saved diff`: what changed between two answers, of which kind, and exit codes by budget."""

import json
from pathlib import Path

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
    from gpucost.library.diff import CostChange, as_markdown

    found = CostChange("a run", "cost_usd", 1.0, 2.0, None, (("model", "a|b\n<b>", "1", "2", 1.0),), ("<script>",))
    text = as_markdown(found)
    assert "a\\|b &lt;b>" in text
    assert "<script>" not in text


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Two answers each of owning, serving and a mix: dearer servers, more tokens, a dearer rent."""
    folder = tmp_path_factory.mktemp("others")
    owning = {"gpu": "h100-sxm", "gpus": 64, "rent": 3.6, "years": 4, "draws": 0, "catalog": catalog()}
    serving = {"model": "8b", "prompt_tokens": 500, "output_tokens": 200, "gpu": "h100-sxm", "catalog": catalog()}
    mixing = {"constant": 64, "months": 12, "gpu": "h100-sxm", "own": False, "catalog": catalog()}
    asked = {
        "tco": (gpucost.tco, owning, {"set": {"server_usd": 280_000}}, {"set": {"server_usd": 320_000}}),
        "inference": (gpucost.inference, serving, {"tokens_per_month": "5b"}, {"tokens_per_month": "50b"}),
        "mix": (gpucost.mix, mixing, {"rent": 2.0}, {"rent": 3.0}),
    }
    pairs = {}
    for kind, (question, base, *changes) in asked.items():
        paths = [folder / f"{kind}{number}.json" for number in range(2)]
        for path, change in zip(paths, changes, strict=True):
            path.write_text(question(**base, **change).to_json())
        pairs[kind] = [str(path) for path in paths]
    return pairs


def paid(kind, path):
    payload = json.loads(Path(path).read_text())
    if kind == "tco":
        return min(row["npv_usd"] for row in payload["options"] if row["name"] in ("own", "rent"))
    return payload["cost_usd"] if kind == "mix" else payload["options"][0]["usd_per_month"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tco", "inference", "mix"])
def test_other_kinds_of_answers_are_judged_by_what_is_paid(kind, others):
    """The budget is about the cheapest way to the hours, the month of serving, the mix: never about a saving."""
    from gpucost.errors import OverBudgetError

    was, now = (paid(kind, path) for path in others[kind])
    assert now > was > 0
    text = run(*others[kind], "--format", "github").stdout
    assert text.startswith(f"### GPU cost: +${now - was:,.2f} (+{now / was - 1:.1%})"), text[:80]
    for limits, broken in (
        (("--budget", f"{now - 1:.2f}"), True),
        (("--budget", f"{now + 1:.2f}"), False),
        (("--most-rise", f"{99 * (now / was - 1):.4f}%"), True),
        (("--most-rise", f"{101 * (now / was - 1):.4f}%"), False),
    ):
        result = run(*others[kind], *limits)
        assert isinstance(result.exception, OverBudgetError) == broken, limits


def test_answers_of_two_kinds_are_refused(others):
    result = run(others["tco"][0], others["mix"][0])
    assert result.exit_code != 0
