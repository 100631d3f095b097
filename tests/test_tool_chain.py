"""Where people are: the action for pull requests, the hooks before a commit, the conda recipe, the gallery."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpucost

ROOT = Path(__file__).resolve().parent.parent
PLAN = '[[training]]\nname = "run"\nmodel = "8b"\ntokens = "100b"\ngpu = "h100-sxm"\ngpus = 64\n'


def git(folder, *words):
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def change(tmp_path):
    """Return a checkout whose branch trains on a fifth more tokens than the branch that it goes to."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    git(before, "init", "-q", "-b", "main")
    (before / "plan.toml").write_text(PLAN, "utf-8")
    git(before, "add", ".")
    git(before, "commit", "-qm", "Plan")
    git(tmp_path, "clone", "-q", str(before), str(after))
    (after / "plan.toml").write_text(PLAN.replace("100b", "120b"), "utf-8")
    git(after, "commit", "-qam", "Train longer")
    return after


def commented(checkout, **limits):
    """Run what the action runs; return its exit code and the comment."""
    here = checkout.parent / "runner"
    here.mkdir(exist_ok=True)
    command = here / "gpucost"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpucost "$@"\n', "utf-8")
    command.chmod(0o755)
    stated = {"SCENARIO": "plan.toml", "PART": "run", "BUDGET": "", "MOST_RISE": "", "COMMENT": "false", "BASE": "main"}
    environment = {**os.environ, **stated, **limits, "RUNNER_TEMP": str(here), "GPUCOST": str(command)}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        ["bash", str(ROOT / ".github/cost-comment.sh")], cwd=checkout, env=environment, capture_output=True, text=True
    )
    text = (here / "cost.md").read_text("utf-8") if (here / "cost.md").exists() else done.stderr
    return done.returncode, text


@pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="needs git and bash")
def test_the_action_says_what_a_change_costs_and_fails_beyond_a_limit(change):
    code, text = commented(change)
    assert code == 0, text
    assert re.search(r"GPU cost: \+\$[\d,.]+ \(\+(19|20)\.\d%\)", text)
    assert commented(change, MOST_RISE="10%")[0] == 3
    assert commented(change, BUDGET="1000")[0] == 3
    assert commented(change, BUDGET="1000000", MOST_RISE="30%")[0] == 0


@pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="needs git and bash")
def test_the_action_edits_its_own_comment_alone_and_hands_on_numbers(change):
    here = change.parent / "runner"
    here.mkdir()
    gh = here / "gh"
    gh.write_text('#!/bin/sh\necho "$@" >>"$RUNNER_TEMP/asked"\ncase "$*" in *--jq*) echo 77;; esac\n', "utf-8")
    gh.chmod(0o755)
    told = {"COMMENT": "true", "PULL": "5", "GITHUB_REPOSITORY": "o/r", "GITHUB_OUTPUT": str(here / "outputs")}
    code, text = commented(change, **told, PATH=f"{here}:{os.environ['PATH']}", MOST_RISE="10%")
    assert code == 3
    assert text.startswith("<!-- gpucost: plan.toml#run -->\n")
    asked = (here / "asked").read_text("utf-8")
    assert "gpucost: plan.toml#run" in asked
    assert "PATCH repos/o/r/issues/comments/77" in asked
    outputs = dict(line.split("=", 1) for line in (here / "outputs").read_text("utf-8").splitlines())
    assert outputs["over"] == "true"
    assert 0 < float(outputs["change"]) < float(outputs["cost"])
    (here / "asked").unlink()
    same = {**told, "BASE": "HEAD", "ONLY_IF_CHANGED": "true"}
    git(change, "update-ref", "refs/remotes/origin/HEAD2", "HEAD")
    commented(change, **{**same, "BASE": "HEAD2"}, PATH=f"{here}:{os.environ['PATH']}")
    assert not (here / "asked").exists()


@pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="needs git and bash")
def test_new_spending_is_shown_as_new_and_held_to_the_budget(change):
    (change / "more.toml").write_text(PLAN, "utf-8")
    code, text = commented(change, SCENARIO="more.toml")
    assert code == 0, text
    assert "is new" in text
    assert "unchanged" not in text
    assert re.search(r"\d USD|\$\d", text)
    assert commented(change, SCENARIO="more.toml", BUDGET="10")[0] == 3


@pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="needs git and bash")
def test_what_init_writes_answers_with_the_default_part(change):
    init = [sys.executable, "-m", "gpucost", "init", "scenario.toml"]
    subprocess.run(init, cwd=change, check=True, capture_output=True)
    code, text = commented(change, SCENARIO="scenario.toml", PART="run")
    assert code == 0, text


@pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="needs git and bash")
def test_a_base_that_cannot_be_read_is_said_and_leaves_no_worktree(change):
    base = change.parent / "before"
    (base / "plan.toml").write_text("[[training]]\nmodel = ", "utf-8")
    git(base, "commit", "-qam", "Break the plan")
    git(change, "fetch", "-q")
    for _ in range(2):  # the next run works as well
        code, text = commented(change)
        assert code == 0, text
        assert "be read" in text
    listed = subprocess.run(["git", "worktree", "list"], cwd=change, capture_output=True, text=True).stdout
    assert len(listed.splitlines()) == 1


def test_the_hooks_take_no_file_of_this_repository_that_is_no_scenario():
    text = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    [pattern, _] = re.findall(r"files: (.*)", text)
    assert re.search(pattern, "scenario.toml")
    assert not re.search(pattern, "plan.toml")
    assert not (ROOT / "plan.toml").exists()


def test_the_action_hands_every_input_to_its_script():
    text = (ROOT / "action.yml").read_text("utf-8")
    script = (ROOT / ".github/cost-comment.sh").read_text("utf-8")
    inputs = re.findall(r"^  ([a-z-]+):$", text.partition("inputs:")[2].partition("outputs:")[0], re.M)
    assert {f"inputs.{name}" for name in inputs} == set(re.findall(r"inputs\.[a-z-]+", text))
    handed = re.findall(r"^ {8}([A-Z_]+): ", text.partition("id: cost")[2], re.M)
    assert all(f"${name}" in script or f"${{{name}" in script for name in handed if name != "GH_TOKEN")


def test_the_hooks_run_commands_that_exist(tmp_path):
    entries = re.findall(r"entry: gpucost (.*)", (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    plan = tmp_path / "plan.toml"
    plan.write_text(f"{PLAN}budget = 10\n", "utf-8")
    assert entries == ["report", "data check"]
    done = subprocess.run([sys.executable, "-m", "gpucost", "report", str(plan)], capture_output=True, text=True)
    assert done.returncode == 3
    assert "budget" in done.stderr


def test_the_conda_recipe_asks_for_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text("utf-8")
    run = re.findall(r"^    - (\S+) (\S+)$", recipe.partition("  run:")[2].partition("tests:")[0], re.M)
    asked = {name.replace("python-duckdb", "duckdb"): bound for name, bound in run if name != "python"}
    stated = (re.match(r"([A-Za-z0-9_-]+)(.*)", item).groups() for item in project["dependencies"])
    assert asked == {name.lower(): bound for name, bound in stated}
    assert f'version: "{gpucost.__version__}"' in recipe
    assert f"version: {gpucost.__version__}" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_every_picture_of_the_gallery_is_one_that_its_answer_draws():
    from benchmarks import gallery

    drawn = {}
    for picture in gallery.PICTURES:
        drawn.setdefault(picture.answer, picture.answer())
        assert any(picture.chart in title for title in drawn[picture.answer].charts()), picture.name
        assert (ROOT / gallery.FOLDER / f"{picture.name}.svg").is_file()


def test_every_benchmark_runs_where_changes_are_checked():
    """Those of `device` need a GPU, `architectures` transformers; the others run there, in tests, or make a page."""
    asked = (ROOT / ".ci/run").read_text("utf-8") + (ROOT / "docs/generate.py").read_text("utf-8")
    asked += "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    names = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "architectures"} | {"fuzz"}
    small = re.findall(
        r"^([a-z_]+)(?: .*)?$", asked.partition("<<'BENCHMARKS'\n")[2].partition("\nBENCHMARKS")[0], re.M
    )
    ran = {name for name in names if name in small or re.search(rf"benchmarks(\.| import .*\b){name}\b", asked)}
    assert ran == names
