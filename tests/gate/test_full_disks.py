"""Disks that are full: every writer says so in a sentence, leaves what stood there, and nothing beside it."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fuzz import good

SWEEP = ["sweep", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "8,16", "--tokens", "1b", "--workers", "1"]
QUOTES = "provider,instance_type,gpu,gpus,option,usd_per_hour,region\nacme,a8,h100-sxm,8,on_demand,24.0,us-east-1\n"
WRITERS = {
    "charges as Parquet": ["saved", "export", "--focus", "answer.json", "-o", "out.parquet"],
    "charges as CSV": ["saved", "export", "--focus", "answer.json", "-o", "out.csv"],
    "a sweep as Parquet": [*SWEEP, "-o", "out.parquet"],
    "a sweep as CSV": [*SWEEP, "-o", "out.csv"],
    "a workbook": ["report", "answer.json", "-o", "out.xlsx"],
    "a page": ["report", "answer.json", "-o", "out.html"],
    "rows": ["prices", "--gpu", "h100-sxm", "-o", "out.json"],
    "a scenario": ["init", "out.toml"],
    "a snapshot": ["prices", "refresh", "--from", "quotes.csv", "--store", "store"],
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("most_bytes", [0, 500])
def test_a_full_disk_is_a_sentence_and_leaves_no_litter(name, most_bytes, tmp_path):
    (tmp_path / "answer.json").write_bytes(good.answers()[0])
    (tmp_path / "quotes.csv").write_text(QUOTES)
    target = Path(tmp_path, WRITERS[name][-1])
    if target.suffix and name != "a scenario":
        target.write_bytes(b"old")
    before = {path for path in tmp_path.rglob("*") if path.is_file()}

    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    command = [sys.executable, "-m", "gpucost", *WRITERS[name]]
    homes = {f"XDG_{kind}_HOME": str(tmp_path / "home") for kind in ("CONFIG", "DATA", "CACHE")}
    import os

    given = {**os.environ, **homes, "PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=given, preexec_fn=full, timeout=120
    )
    assert done.returncode == 2, done.stderr
    assert "cannot" in done.stderr
    assert "internal error" not in done.stderr
    assert "format may" not in done.stderr, "the source is not to blame"
    assert not target.is_file() or target.read_bytes() == b"old"
    left = {path for path in tmp_path.rglob("*") if path.is_file() and "home" not in path.parts} - before
    assert left == set()
