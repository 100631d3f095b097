"""Where people are: the action for pull requests, the hooks before a commit, the conda recipe, the gallery."""

import importlib.util
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
        [sys.executable, str(ROOT / ".github/cost_comment.py")],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
    )
    text = (here / "cost.md").read_text("utf-8") if (here / "cost.md").exists() else done.stderr
    return done.returncode, text


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_the_action_says_what_a_change_costs_and_fails_beyond_a_limit(change):
    code, text = commented(change, BUDGET="1000000", MOST_RISE="30%")
    assert code == 0, text
    assert re.search(r"GPU cost: \+\$[\d,.]+ \(\+(19|20)\.\d%\)", text)
    assert commented(change, MOST_RISE="10%")[0] == 3


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
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


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_several_scenarios_and_parts_stand_in_one_comment_and_a_shallow_checkout_is_enough(change):
    chat = '[[serving]]\nname = "chat"\nmodel = "8b"\ntokens_per_month = "1b"\ngpu = "l40s"\n'
    (change / "chat.toml").write_text(PLAN.replace('"run"', '"again"') + chat, "utf-8")
    git(change, "update-ref", "-d", "refs/remotes/origin/main")  # as after a checkout of the newest commit alone
    here = change.parent / "runner"
    here.mkdir()
    told = {"SCENARIO": "plan.toml chat.toml", "PART": "all", "GITHUB_OUTPUT": str(here / "outputs")}
    code, text = commented(change, **told)
    assert code == 0, text
    assert text.startswith("<!-- gpucost: plan.toml chat.toml#all -->\n### GPU cost: +")
    rows = re.findall(r"^\| (\S+#\S+) \| \$([\d,.]+) \| ([+-][\d,.]+) \|$", text, re.M)
    assert [name for name, *_ in rows] == ["plan.toml#run", "chat.toml#again", "chat.toml#chat"]
    cost, change_usd = (sum(float(row[place].replace(",", "")) for row in rows) for place in (1, 2))
    outputs = dict(line.split("=", 1) for line in (here / "outputs").read_text("utf-8").splitlines())
    assert (float(outputs["cost"]), float(outputs["change"])) == pytest.approx((cost, change_usd), abs=0.05)


def test_a_note_on_gitlab_is_found_by_its_marker_and_edited(monkeypatch):
    """Two pages of notes: the one of another bot, which quotes the marker, stays as it is."""
    spec = importlib.util.spec_from_file_location("cost_comment", ROOT / ".github/cost_comment.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    pages = {
        "1": ([{"id": 1, "body": "see <!-- gpucost: a#run -->"}], "2"),
        "2": ([{"id": 7, "body": "MARK\nold"}], ""),
    }
    asked = []

    def gitlab(url, method="GET", body=None):
        asked.append((method, url, body))
        return pages[url.rpartition("page=")[2]] if method == "GET" else ({}, "")

    monkeypatch.setattr(script, "gitlab", gitlab)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    for name, value in {"CI_API_V4_URL": "https://git/api/v4", "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "5",
                        "GITLAB_TOKEN": "secret"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    script.publish("MARK\nnew", "MARK", Path("cost.md"))
    script.publish("OTHER\nnew", "OTHER", Path("cost.md"))
    notes = "https://git/api/v4/projects/3/merge_requests/5/notes"
    written = [item for item in asked if item[0] != "GET"]
    assert written == [("PUT", f"{notes}/7", {"body": "MARK\nnew"}), ("POST", notes, {"body": "OTHER\nnew"})]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_new_spending_is_shown_as_new_and_held_to_the_budget(change):
    (change / "more.toml").write_text(PLAN, "utf-8")
    code, text = commented(change, SCENARIO="more.toml")
    assert code == 0, text
    assert "is new" in text
    assert "unchanged" not in text
    assert re.search(r"\d USD|\$\d", text)
    assert commented(change, SCENARIO="more.toml", BUDGET="10")[0] == 3


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_what_init_writes_answers_with_the_default_part(change):
    init = [sys.executable, "-m", "gpucost", "init", "scenario.toml"]
    subprocess.run(init, cwd=change, check=True, capture_output=True)
    code, text = commented(change, SCENARIO="scenario.toml", PART="run")
    assert code == 0, text


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_base_that_cannot_be_read_is_said_and_leaves_no_worktree(change):
    before = change.parent / "before"
    (before / "plan.toml").write_text("[[training]]\nmodel = ", "utf-8")
    git(before, "commit", "-qam", "Break the plan")
    git(change, "fetch", "-q")
    for base in ("main", "main", "nowhere"):  # the next run works as well, and so where the branch is not there
        code, text = commented(change, BASE=base)
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
    script = (ROOT / ".github/cost_comment.py").read_text("utf-8")
    inputs = re.findall(r"^  ([a-z-]+):$", text.partition("inputs:")[2].partition("outputs:")[0], re.M)
    assert {f"inputs.{name}" for name in inputs} == set(re.findall(r"inputs\.[a-z-]+", text))
    handed = re.findall(r"^ {8}([A-Z_]+): ", text.partition("id: cost")[2], re.M)
    assert all(f'"{name}"' in script for name in handed if name != "GH_TOKEN")


def test_the_job_for_gitlab_hands_over_what_the_script_reads():
    job = (ROOT / "packaging/gitlab/cost.yml").read_text("utf-8")
    script = (ROOT / ".github/cost_comment.py").read_text("utf-8")
    stated = re.findall(r"^    ([A-Z_]+): ", job, re.M)
    assert {"SCENARIO", "PART", "BUDGET", "MOST_RISE", "ONLY_IF_CHANGED", "OUT", "BASE"} <= {*stated}
    assert all(f'"{name}"' in script for name in stated if name not in ("VERSION", "COST_SCRIPT"))


def test_actions_are_those_of_a_commit_and_the_docs_name_a_release():
    workflows = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / "action.yml"]
    used = [use for path in workflows for use in re.findall(r"^ +(?:- )?uses: (\S+.*)$", path.read_text("utf-8"), re.M)]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[\d.]+", use) for use in used), used
    assert len(set(used)) == len({use.partition("@")[0] for use in used}), "one version of each"
    release = f"v{gpucost.__version__}"
    for path in (ROOT / "docs/install.md", ROOT / "action.yml", ROOT / "packaging/gitlab/cost.yml"):
        named = re.findall(r"OWNER/gpucost(?:@|/blob/|/)(v?[\w.]+)", path.read_text("utf-8"))
        assert {*named} == {release}, path.name
    assert f"rev: {release} " in (ROOT / "docs/install.md").read_text("utf-8")
    assert re.fullmatch(r"v\d+\.\d+\.\d+", release)


def test_the_tests_of_other_systems_exist():
    listed = re.search(r"SYSTEMS_TESTS: (.*)", (ROOT / ".github/workflows/tests.yml").read_text("utf-8"))[1].split()
    assert all((ROOT / path).exists() for path in listed)


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
