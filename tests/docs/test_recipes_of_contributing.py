"""What CONTRIBUTING says of adding a figure is done to a copy of the package, and the figure is there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "`work_hours: NotRequired[float]`"


@pytest.fixture
def copy(tmp_path):
    """Lay out the package with the data beside it, as a checkout has them."""
    shutil.copytree(ROOT / "gpucost", tmp_path / "gpucost", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("pricing", "models"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    return tmp_path


def option_of(folder):
    """Return the first option of an estimate by the package in a folder."""
    asked = ["estimate", "--model", "8b", "--tokens", "1b", "--gpu", "h100-sxm", "--top", "1", "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-m", "gpucost", *asked], cwd=folder, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["options"][0]


TOTAL = "interruptions,interruptions,days,from start to end,calendar_hours / hours_per_day,\n"
NEW_LINE = "interruptions,interruptions,doubled_days,twice as long,days * 2,\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["work_hours", "doubled_days"])
def test_a_line_in_the_type_of_an_answer_is_a_figure_of_every_offer(copy, name):
    assert RECIPE in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    types, bill = copy / "gpucost/answers/training.py", copy / "gpucost/money/training_bill.csv"
    before = option_of(copy)
    last = "    kgco2e: float | None\n"
    types.write_text(types.read_text("utf-8").replace(last, f"{last}    {name}: NotRequired[float]\n", 1), "utf-8")
    if name == "doubled_days":  # no line of the bill bears the name
        bill.write_text(bill.read_text("utf-8").replace(TOTAL, TOTAL + NEW_LINE), "utf-8")
    after = option_of(copy)
    assert name not in before
    expected = 2 * after["days"] if name == "doubled_days" else after["gpu_hours"] / after["gpus"] / after["nodes"]
    assert after[name] == pytest.approx(expected, rel=1e-9 if name == "doubled_days" else 0.9)
    assert after["cost_usd"] == before["cost_usd"]
