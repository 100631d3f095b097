"""The documentation says what the product does: blocks run, generated pages are current, links lead somewhere."""

import inspect
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import gpucost
from gpucost import clock
from gpucost.catalog import open_catalog
from tests.bench.records import bench_on_record
from tests.commands import in_process
from tests.docs.blocks import Block, blocks_of

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "tests/calibration/results"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
INSTALLS = {"test-command", "first-command"}  # run whole by .ci/run, in environments of their own
SHELL = {  # by their text: what several pages show runs once
    block.text: block
    for page in PAGES
    for block in blocks_of(page)
    if block.language in ("bash", "sh", "console") and block.marker not in INSTALLS
}


def identity(block: Block) -> str:
    return f"{block.file}:{block.line}"


GENERATED = runpy.run_path(str(DOCS / "generate.py"))["OUTPUTS"]


SECONDS = {  # all for .ci/run
    "pricing/list_declines.csv",
    "pricing/offers/from-history.csv",
}


@pytest.mark.more
@pytest.mark.later
def test_what_is_generated_is_current() -> None:
    paths = [one.path for one in GENERATED if not (one.takes_minutes or one.tested) and one.path not in SECONDS]
    asked = [sys.executable, "-m", "docs.generate", "--check", *paths]  # a process of its own: click keeps help
    run = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_price_row_needs_only_what_its_source_says(tmp_path: Path) -> None:
    fill = runpy.run_path(str(DOCS / "generate.py"))["price_file"]
    shipped = (ROOT / "pricing/offers/lambda.csv").read_text("utf-8")
    names = shipped.splitlines()[0].split(",")
    told = {"provider": "lambda", "instance_type": "8x New", "gpu": "h100-sxm5-80gb", "gpus": "8", "region": "us-1",
            "option": "on_demand", "usd_per_hour": "16", "observed_on": "2026-11-20"}  # fmt: skip
    file = tmp_path / "lambda.csv"
    file.write_text(shipped, "utf-8")
    assert fill(file) == shipped
    file.write_text(shipped + ",".join(told.get(name, "") for name in names) + "\n", "utf-8")
    made = fill(file)
    assert made.startswith(shipped)
    row = dict(zip(names, made.splitlines()[-1].split(","), strict=True))
    assert row["offer_id"] == "lambda/8x-new/8xh100-sxm5-80gb/us-1/on_demand"
    assert (float(row["usd_per_gpu_hour"]), row["billing"], row["recorded_on"]) == (2.0, "per_use", "2026-11-20")
    assert (row["source_id"], row["confidence"]) == ("", "")  # these only a person can say


def test_a_stale_file_is_named_and_written_anew(tmp_path: Path) -> None:
    made = runpy.run_path(str(DOCS / "generate.py"))
    made["stale"].__globals__["ROOT"] = tmp_path
    output = made["Output"]("page.md", lambda: "text\n\n")
    assert made["stale"](output, write=False)
    assert not (tmp_path / "page.md").exists()
    assert made["stale"](output, write=True)
    assert (tmp_path / "page.md").read_text("utf-8") == "text\n"
    assert not made["stale"](output, write=False)


def test_there_are_blocks_to_run() -> None:
    assert len(SHELL) > 10


@pytest.mark.slow
@pytest.mark.parametrize("block", SHELL.values(), ids=identity)
def test_a_shell_block_runs(block: Block, tmp_path: Path) -> None:
    lines = block.text.splitlines()
    if block.language == "console":  # what is shown beside the prompt is output
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    if any(re.match(r"\s*(pip|uv|git|python -m venv|apt|docker|cd|\.ci/run)\b", line) for line in lines):
        pytest.skip("installs something")
    if any(re.match(r"gpucost prices (refresh|verify)\b(?! --help)", line) for line in lines):
        pytest.skip("asks the network, or a store that it filled")
    assert ran("\n".join(lines), tmp_path)


RUN = (
    "id,model,gpu,n_gpus,framework,precision,zero_stage,micro_batch,seq_len,measured_tokens_per_s_per_gpu\n"
    "a,llama-3-8b,h200-sxm,8,torchtitan,bf16,3,1,8192,6000\n"
)


def ran(script: str, folder: Path) -> bool:
    """Tell whether a reader's script runs, in a folder with a demand curve, a bench, runs, a log and a book."""
    if re.search(r"^gpucost bench(?!.*--show)", script, re.MULTILINE) and not find_spec("torch"):
        pytest.skip("PyTorch is not installed (extra: bench)")
    for name in ("bench.json", "node.json"):
        (folder / name).write_text(bench_on_record(), encoding="utf-8")
    (folder / "train.log").write_text("step: 10  loss:  4.2  tps: 7,123  tflops: 412.4  mfu: 41.7%\n", encoding="utf-8")
    (folder / "vllm.log").write_text("Avg generation throughput: 2400.0 tokens/s, Running: 64 reqs\n", encoding="utf-8")
    (folder / "profile_export_aiperf.json").write_bytes((RESULTS / "profile_export_aiperf.json").read_bytes())
    (folder / "runs.csv").write_text(RUN, encoding="utf-8")
    (folder / "book").mkdir(exist_ok=True)
    (folder / "demand.csv").write_text("month,gpus\n1,16\n2,32\n3,64\n4,64\n", encoding="utf-8")
    lines = [re.sub(r"\s#.*", "", line).strip() for line in script.splitlines() if not line.lstrip().startswith("#")]
    asked = [line for line in lines if line]
    own = {"GPUCOST_BOOK": str(folder / "book")}
    if all(PLAIN.fullmatch(line) for line in asked):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            runs = [in_process(*shlex.split(line)[1:], **own) for line in asked]
    else:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = ["bash", "-euo", "pipefail", "-c", script]
        environment = {**os.environ, **own, "PATH": path}
        runs = [subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)]
    for line, run in zip(asked, runs, strict=False):
        print(line, run.returncode, run.stderr)
    meant = {0} | {code for words, codes in SAID_BY_CODE.items() if words in script for code in codes}
    return all(run.returncode in meant and "internal error" not in run.stderr for run in runs)


PLAIN = re.compile(r"gpucost (?!bench|sweep|mcp|page)[^|><&;$`*]*")  # needs neither a shell nor processes of its own
SAID_BY_CODE = {"gpucost audit": (5,), "gpucost prices watch": (3, 4)}  # what an ending other than 0 may mean


README_COMMANDS = re.findall(r"`(gpucost [a-z][^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("command", [text for text in README_COMMANDS if "-o report" not in text])
def test_a_command_of_the_readme_runs(command: str, tmp_path: Path) -> None:
    assert ran(command, tmp_path)


WITH_PYTHON = [
    page
    for page in PAGES
    if any(block.language == "python" and block.marker not in INSTALLS for block in blocks_of(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python_blocks_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks_of(page):
        if block.language == "python" and block.marker not in INSTALLS:
            exec(compile(block.text, f"{block.file}:{block.line}", "exec"), names)
    assert names.keys() - {"__builtins__"}


@pytest.mark.every
@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *PAGES[1:]], ids=lambda page: page.name)
def test_local_links_lead_somewhere(page: Path) -> None:
    body = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", body):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), target
        if anchor and other.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}, (
                target
            )


@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_stored_executed_and_without_errors(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert sum(bool(cell["outputs"]) for cell in code) >= 3
    assert not [output for cell in code for output in cell["outputs"] if output["output_type"] == "error"]


@pytest.mark.parametrize("path", sorted((ROOT / "reports/questions").glob("*.sql")), ids=lambda path: path.stem)
def test_ready_made_questions_have_answers(path: Path) -> None:
    answer = open_catalog().sql(path.read_text(encoding="utf-8"))
    rows = answer.rows if hasattr(answer, "rows") else answer
    assert len(rows) > 3


def test_the_navigation_names_every_page() -> None:
    listed = set(re.findall(r": ([a-z-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert listed == {page.name for page in DOCS.glob("*.md")}


@pytest.mark.slow
def test_what_is_derived_from_prices_does_not_move_with_the_calendar(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {output.path: output for output in runpy.run_path(str(DOCS / "generate.py"))["OUTPUTS"]}
    monkeypatch.setenv(clock.VARIABLE, str(clock.today() + timedelta(days=40)))
    name = "pricing/list_declines.csv"
    assert outputs[name].make() == (ROOT / name).read_text("utf-8")


def test_the_library_page_covers_every_public_name() -> None:
    blocks = set(re.findall(r"^::: (\S+)$", (DOCS / "library.md").read_text(), re.MULTILINE))
    for name in set(gpucost.__all__) - {"__version__"}:
        module = inspect.unwrap(getattr(gpucost, name)).__module__
        places = {module, f"{module}.{name}", f"{module.rpartition('.')[0]}.{name}"}  # a package shows its parts' names
        assert blocks & places, f"docs/library.md lacks {name}"
