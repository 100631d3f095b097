"""A bench keeps what it measured: through cases that hang, die or fail, and through a run that is cut short."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpucost.bench import machine
from gpucost.bench.cases import GROUPS, PROFILES, cases_of
from gpucost.bench.file import read_bench
from gpucost.bench.run import Workers, bench
from gpucost.errors import UsageError
from tests.conftest import heed_interrupts

WORKER = (sys.executable, str(Path(__file__).with_name("worker.py")))


@pytest.fixture
def moods(monkeypatch, tmp_path):
    """Say how the stand-in behaves by case; return what it measured, in order."""
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv("STAND_IN_LOG", str(log))

    def choose(**by_case):
        monkeypatch.setenv("STAND_IN_MOODS", json.dumps(by_case.get("cases", {})))
        return lambda: log.read_text().splitlines()

    return choose


@pytest.fixture
def short_grace(monkeypatch):
    """Wait a moment for the last words of processes that a script ends at once."""
    monkeypatch.setattr("gpucost.bench.run.LOOK_S", 0.1)
    monkeypatch.setattr("gpucost.bench.run.GRACE_S", 0.5)


def run(path, **more):
    return bench(path, command=WORKER, gpus=1, groups=("memory", "elementwise"), **more)


def test_every_case_is_measured_and_kept(tmp_path, moods):
    measured = moods(cases={"norm 16384 4096": "moves"})
    result = run(tmp_path / "bench.json")
    assert result == json.loads((tmp_path / "bench.json").read_text())
    ids = [row["id"] for row in result["figures"]]
    again = ["norm 16384 4096"]  # the third round is of what moves and may yet be a figure; the host's launch is none
    assert measured() == ids * 2 + again
    assert [len(row["rounds_s"]) for row in result["figures"]] == [3 if name in again else 2 for name in ids]
    assert result["failed"] == []
    assert {row["group"] for row in result["figures"]} == {"memory", "elementwise"}


def test_a_short_bench_that_takes_long_repeats_no_more(tmp_path, moods, monkeypatch):
    monkeypatch.setattr("gpucost.bench.run.REPEATS_END_S", {"short": 0.0})
    measured = moods()
    result = run(tmp_path / "bench.json")
    assert measured() == [row["id"] for row in result["figures"]]


def test_a_case_that_fails_or_kills_its_process_costs_only_itself(tmp_path, moods):
    moods(cases={"launch": "dies", "copy 16777216": "fails"})
    result = run(tmp_path / "bench.json")
    reasons = {entry["id"]: entry["reason"] for entry in result["failed"]}
    assert reasons.keys() == {"launch", "copy 16777216"}
    assert "an illegal memory access" in reasons["launch"]
    assert "80.0 GB are free" in reasons["copy 16777216"]
    assert "norm 16384 4096" in [row["id"] for row in result["figures"]]


def test_a_case_that_hangs_is_ended_at_its_limit(moods):
    moods(cases={"launch": "hangs"})
    case = replace(next(case for case in cases_of("short", 1) if case.id == "launch"), limit_s=1.0)
    workers = Workers(1, "auto", WORKER)
    begin = time.monotonic()
    try:
        assert workers.measure(case)["failed"].endswith(" 1 s")
        assert time.monotonic() - begin < 60
        after = replace(case, id="norm 16384 4096")
        assert workers.measure(after)["figures"]["time_s"] == 0.001
    finally:
        workers.stop()


def test_a_bench_goes_on_where_it_stopped(tmp_path, moods):
    measured = moods(cases={"launch": "fails"})
    first = run(tmp_path / "bench.json")
    before = len(measured())
    moods()
    second = run(tmp_path / "bench.json")
    assert measured()[before:] == ["launch"] * 2
    assert len(second["figures"]) == len(first["figures"]) + 1
    assert second["failed"] == []
    assert second["started"] == first["started"]


def test_a_bench_that_is_killed_leaves_a_whole_file(tmp_path, moods):
    moods(cases={"launch": "hangs"})
    path = tmp_path / "bench.json"
    code = (
        "from gpucost.bench.run import bench\n"
        f"bench({str(path)!r}, command={WORKER!r}, gpus=1, groups=('memory', 'elementwise'))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ})
    until = time.monotonic() + 60
    while time.monotonic() < until and not (path.exists() and "copy 4194304" in path.read_text()):
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert [row["op"] for row in read_bench(path)["figures"]] == ["copy"] * 4


def test_a_bench_of_another_machine_is_refused(tmp_path, moods, monkeypatch):
    moods()
    run(tmp_path / "bench.json")
    monkeypatch.setenv("STAND_IN", "NVIDIA L4")
    with pytest.raises(UsageError, match="NVIDIA L4"):
        run(tmp_path / "bench.json")
    assert run(tmp_path / "bench.json", anew=True)["machine"]["device"] == "NVIDIA L4"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"kind": "bench"}', '{"kind": "estimate", "figures": []}'])
def test_what_is_no_bench_is_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"other\.json"):
        read_bench(path)


def test_a_driver_that_does_not_start_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN_DIES", "1")
    with pytest.raises(UsageError, match="no driver was found"):
        run(tmp_path / "bench.json")


def test_no_gpu_is_said(tmp_path, moods, monkeypatch):
    moods()
    monkeypatch.setenv("STAND_IN_GPUS", "0")
    with pytest.raises(UsageError, match=r"(--device|device=) cpu"):
        run(tmp_path / "bench.json", device="cuda")
    assert not (tmp_path / "bench.json").exists()


@pytest.mark.parametrize(("sickness", "words"), [("slow", "GPU 1 reaches 50% of its neighbours"),
                                                 ("dies", "GPU 1 failed copy 1073741824")])  # fmt: skip
@pytest.mark.usefixtures("short_grace")
def test_one_sick_gpu_of_two_is_named_and_the_rest_is_kept(tmp_path, moods, monkeypatch, sickness, words):
    from gpucost.bench.verdict import findings

    moods()
    monkeypatch.setenv("STAND_IN_SICK", "1")
    monkeypatch.setenv("STAND_IN_SICKNESS", sickness)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    result = bench(tmp_path / "bench.json", command=WORKER, gpus=2, groups=("memory", "links"))
    assert any(words in finding for finding in findings(result, None, []))
    assert {"copy"} <= {row["op"] for row in result["figures"]}
    if sickness == "dies":  # the pair never starts: tried twice, then given up
        reasons = [entry["reason"] for entry in result["failed"]]
        assert len(reasons) == len([case for case in cases_of("short", 2) if case.group == "links"])
        assert "no driver was found" in reasons[0]
        assert all(reason.startswith("given up") for reason in reasons[2:])


@pytest.mark.usefixtures("short_grace")
def test_a_rank_that_is_lost_ends_the_wait_of_the_others(moods):
    case = next(case for case in cases_of("short", 2) if case.group == "links")
    moods(cases={case.id: "loses a rank"})
    workers = Workers(2, "auto", WORKER)
    begin = time.monotonic()
    try:
        assert workers.measure(case) == {"failed": "process 1 of 2 died: fell off the bus"}
        assert time.monotonic() - begin < 30  # the case's own limit is a minute
        assert workers.processes == []
    finally:
        workers.stop()


@pytest.mark.usefixtures("short_grace")
def test_a_rank_that_is_killed_is_said(moods):
    case = next(case for case in cases_of("short", 2) if case.group == "links")
    moods(cases={case.id: "is killed"})
    workers = Workers(2, "auto", WORKER)
    assert workers.measure(case) == {"failed": "process 1 of 2 died: killed by signal 9"}


def test_after_a_failure_a_group_starts_anew_for_ranks_may_wait_for_each_other(moods):
    case = next(case for case in cases_of("short", 2) if case.group == "links")
    moods(cases={case.id: "fails"})
    workers = Workers(2, "auto", WORKER)
    assert "of memory" in workers.measure(case)["failed"]
    assert workers.processes == []


def test_a_bench_that_goes_on_counts_the_time_it_has_taken(tmp_path, moods, monkeypatch):
    monkeypatch.setattr("gpucost.bench.run.REPEATS_END_S", {"short": 1000.0})
    path = tmp_path / "bench.json"
    first = run(path)
    path.write_text(json.dumps({**first, "figures": first["figures"][:3], "spent_s": 1001.0}))
    again = run(path)
    assert len(again["figures"]) == len(first["figures"])
    assert [len(row["rounds_s"]) for row in again["figures"][3:]] == [1] * (len(first["figures"]) - 3)
    assert again["spent_s"] > 1001


def test_a_bench_of_a_processor_goes_on_too(tmp_path, moods, monkeypatch):
    measured = moods()
    monkeypatch.setenv("STAND_IN", "cpu")
    monkeypatch.setenv("STAND_IN_GPUS", "0")
    first = bench(tmp_path / "bench.json", command=WORKER, groups=("memory",))
    assert first["machine"]["gpus"] == 0
    assert any("processor" in note for note in first["notes"])
    before = len(measured())
    again = bench(tmp_path / "bench.json", command=WORKER, groups=("memory",))
    assert again["figures"] == first["figures"]
    assert len(measured()) == before


def test_fewer_gpus_than_asked_are_said(tmp_path, moods):
    moods()
    found = bench(tmp_path / "bench.json", command=WORKER, gpus=3, groups=("memory",))
    assert any("3 GPUs" in note and " 2 " in note for note in found["notes"])


def test_only_gpus_that_may_be_used_are_looked_at(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,3")
    assert "--id=1,3" in machine._query()
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert machine.look() == []


def test_a_bench_that_is_interrupted_keeps_what_it_has_and_leaves_nobody_behind(tmp_path, moods):
    measured = moods(cases={"launch": "hangs"})
    path = tmp_path / "bench.json"
    code = (
        "from gpucost.bench.run import bench\n"
        f"bench({str(path)!r}, command={WORKER!r}, gpus=1, groups=('memory', 'elementwise'))"
    )
    given = {"env": {**os.environ}, "stderr": subprocess.PIPE, "text": True, "preexec_fn": heed_interrupts}
    process = subprocess.Popen([sys.executable, "-c", code], **given)
    until = time.monotonic() + 60
    while time.monotonic() < until and len(measured()) < 4:
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    left = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert len(read_bench(path)["figures"]) == 4
    assert not any(Path(f"/proc/{pid}/cmdline").exists() for pid in left)


def test_missing_pytorch_is_said_before_anything_starts(tmp_path):
    code = "import sys; sys.modules['torch'] = None\nfrom gpucost.bench.run import bench\nbench('x.json')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "gpucost[bench]" in done.stderr or "did not start" in done.stderr
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_cases_have_names_of_their_own_and_belong_to_a_group(profile, gpus):
    cases = cases_of(profile, gpus)
    assert len({case.id for case in cases}) == len(cases)
    assert {case.group for case in cases} <= set(GROUPS)
    assert any(case.ranks == gpus for case in cases)


def test_the_real_process_measures_a_tiny_profile(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed (extra: bench)")
    result = bench(tmp_path / "bench.json", profile="tiny", device="cpu", groups=("memory", "matmul", "train"))
    assert result["failed"] == []
    for row in result["figures"]:
        assert row["time_s"] > 0


def test_too_little_memory_is_said_in_numbers():
    pytest.importorskip("torch", reason="PyTorch is not installed (extra: bench)")
    from gpucost.bench.gpu.worker import answer

    case = {"id": "big", "op": "copy", "arguments": {"size_bytes": 4 * 2**30}}
    assert answer(case)["failed"] == "out of memory: needs 8.6 GB, 2.0 GB are free"
