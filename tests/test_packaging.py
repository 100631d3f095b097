"""The wheel, installed alone, works from any folder; building it leaves nothing behind."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow


def run(*command, cwd=None, **environment):
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build from a copy of the tree with the build tools that are installed; no network."""
    pytest.importorskip("hatchling")
    target = tmp_path_factory.mktemp("wheel")
    before = set(ROOT.rglob("*.parquet"))
    result = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert set(ROOT.rglob("*.parquet")) == before
    assert not (ROOT / "gpucost/_data").exists()
    return next(target.glob("*.whl"))


def test_the_wheel_holds_code_data_and_parquet_twins(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "gpucost/py.typed",
        "gpucost/schemas/columns.csv",
        "gpucost/_data/models/accelerators.csv",
        "gpucost/_data/pricing/offers/aws.csv",
    } <= names
    assert {"gpucost/_data/pricing/offers.parquet", "gpucost/_data/parquet.json"} <= names
    assert not any(name.startswith(("tests/", "benchmarks/", "pricing/", "models/")) for name in names)


def test_the_wheel_alone_answers_from_any_folder(wheel, tmp_path, monkeypatch):
    """Install without dependencies into an empty environment that borrows this one's packages."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    home = tmp_path / "alone"
    venv.create(home, with_pip=False)
    site = next(home.glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    where = run(home / "bin/python", "-c", "import gpucost; print(gpucost.__file__)", cwd="/")
    assert where.stdout.startswith(str(site))
    prices = run(home / "bin/python", "-m", "gpucost", "prices", "--gpu", "h100-sxm", "--format", "json", cwd="/")
    assert prices.returncode == 0, prices.stderr
    from gpucost.catalog import open_catalog

    answer = json.loads(prices.stdout)
    assert (
        answer["catalog_version"] == open_catalog().version
    )  # the same facts, read from Parquet there and from CSV here
    assert len(answer["rows"]) == len(
        [row for row in open_catalog().price_rows if "h100-sxm5-80gb" in row["gpu"].split("|")]
    )
