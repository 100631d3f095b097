"""What stays unloaded: start-up is paid by everyone, heavy packages only by those who need them."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpucost

HEAVY = (
    "pandas",
    "scipy",
    "openpyxl",
    "xlsxwriter",
    "altair",
    "jinja2",
    "vl_convert",
    "matplotlib",
    "rich",
    "statistics",
    "tomllib",
    "difflib",
    "reportlab",
)
CODE = """
import sys
sys.argv = ["gpucost", *{arguments!r}]
from gpucost.cli import main
try:
    main()
except SystemExit:
    pass
print("LOADED", *sorted({{name.split(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def loaded_by(*arguments: str) -> set[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GPUCOST_")}
    result = subprocess.run(
        [sys.executable, "-c", CODE.format(arguments=arguments)],
        capture_output=True,
        text=True,
        env=clean,
        encoding="utf-8",
    )
    line = next(line for line in result.stderr.splitlines() if line.startswith("LOADED"))
    return set(line.split()[1:])


def test_help_loads_click_and_little_else():
    assert not loaded_by("--help") & {*HEAVY, "numpy", "duckdb", "pydantic", "platformdirs", "pyxirr"}


@pytest.mark.parametrize("arguments", [("prices", "--gpu", "h100-sxm"), ("gpus", "h100"), ("data", "systems")])
def test_the_lists_need_no_arithmetic_and_no_validation(arguments):
    assert not loaded_by(*arguments) & {*HEAVY, "numpy", "pydantic", "pyxirr"}


def test_an_estimate_loads_no_frame_no_solver_and_no_writer():
    wrappers = {"duckdb", "platformdirs", "email"}  # what stands around the compiled module and a folder's name
    assert not loaded_by("estimate", "--model", "8b", "--tokens", "100b") & {*HEAVY, *wrappers, "pydantic"}


def test_type_checkers_see_every_public_name():
    tree = ast.parse(Path(gpucost.__file__).read_text("utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {name.asname for node in checked.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert imported - {None} == set(gpucost.__all__) - {"__version__"}


def test_importing_the_package_reads_nothing():
    code = "import sys, gpucost; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert not loaded & {*HEAVY, "numpy", "duckdb", "pydantic", "click"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("models", "--format", "json"), 0),
        (("estimate", "--model", "nosuch", "--tokens", "1b"), 2),
        (("--bad",), 2),
        (("fit", "--model", "405b", "--gpu", "h100-sxm", "--gpus", "1"), 6),
    ],
)
def test_the_process_ends_with_all_its_output_and_the_right_code(arguments, code):
    ended = subprocess.run([sys.executable, "-m", "gpucost", *arguments], capture_output=True, encoding="utf-8")
    assert ended.returncode == code
    if code == 0:
        assert len(json.loads(ended.stdout)["rows"]) > 100
        assert ended.stderr == ""
    else:
        assert (ended.stderr + ended.stdout).endswith("\n")


@pytest.mark.parametrize(
    ("arguments", "closed", "code"),
    [
        ("gpus h100 -o out.csv", ">&-", 0),
        ("gpus h100 -o out.csv", "2>&-", 0),
        ("gpus h100 > out.csv", "2>&-", 0),
        ("--version", "<&- >&- 2>&-", 0),
        ("gpus nonsense", ">&- 2>&-", 2),
    ],
)
def test_a_closed_stream_changes_neither_the_answer_nor_the_code(tmp_path, arguments, closed, code):
    asked = f"{sys.executable} -m gpucost {arguments} {closed}"
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    ended = subprocess.run(["sh", "-c", asked], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (code, "")
    assert "out.csv" not in arguments or "h100-sxm5-80gb" in (tmp_path / "out.csv").read_text()


def test_the_program_listens_for_an_interrupt_before_anything_slow_is_loaded():
    """Until then Ctrl-C is a traceback of Python's."""
    script = "import sys; before = set(sys.modules); import gpucost.__main__; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert not set(loaded.stdout.split()) & {"typing", "re", "enum", "signal", "functools", "collections"}
