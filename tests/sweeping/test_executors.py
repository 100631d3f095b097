"""Sweeps on Ray and under MPI, where these are installed: the same bytes as in one process, and what a kill costs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

import gpucost
from gpucost.errors import UsageError
from gpucost.sweeping import chunks
from gpucost.sweeping.executors import RayExecutor

DAY = "2026-11-20"
ASKED = {"model": "8b,70b", "gpu": "h100,b200", "gpus": "8:64:x2", "tokens": "10b:100b:10b", "as_of": DAY}


def digests(folder):
    files = sorted(folder.glob("[!.]*.parquet"))
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture
def alone(monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "CASES", 2)
    gpucost.sweep(**ASKED, into=tmp_path / "alone")
    return digests(tmp_path / "alone")


def test_without_ray_its_executor_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="Ray"):
        RayExecutor()


@pytest.mark.slow
def test_a_sweep_on_ray_loses_nothing_with_a_worker(alone, tmp_path):
    ray = pytest.importorskip("ray", reason="needs Ray")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    try:

        @ray.remote
        def worker():
            time.sleep(0.5)  # so that each of the two is asked
            return os.getpid()

        workers = ray.get([worker.remote() for _ in range(2)])
        heard = []

        def told(done, total):
            heard.append(done)
            if len(heard) == 2:
                os.kill(workers[0], signal.SIGKILL)

        gpucost.sweep(**ASKED, into=tmp_path / "back", executor=RayExecutor(num_cpus=1), told=told)
        gpucost.sweep(**ASKED, into=tmp_path / "shared", executor=RayExecutor(), shared=True)
    finally:
        ray.shutdown()
    assert heard[-1] == 1600
    assert digests(tmp_path / "back") == digests(tmp_path / "shared") == alone


_OF_MPI = """
import os, signal, sys
from pathlib import Path
import gpucost
from gpucost.sweeping import chunks

def end(seconds):
    os.kill(os.getpid(), signal.SIGKILL)

def swept(executor):
    def told(done, total):
        if sys.argv[2] == "kill" and done == 20:  # the others of the 64 chunks that wait in the executor come first
            executor.submit(end, 0)
    gpucost.sweep(**ASKED, into=sys.argv[1], executor=executor, told=told)

if __name__ == "__main__":
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor, MPIPoolExecutor
    chunks.CASES = 2
    if sys.argv[2] == "comm":
        with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
            if executor is not None:
                swept(executor)
    else:
        with MPIPoolExecutor() as executor:
            swept(executor)
"""


@pytest.mark.slow
def test_a_sweep_under_mpi_gives_the_same_bytes_and_goes_on_after_a_kill(alone, tmp_path):
    pytest.importorskip("mpi4py", reason="needs mpi4py")
    folder = Path(sys.executable).parent
    launcher = shutil.which("mpiexec", path=f"{folder}{os.pathsep}{os.environ['PATH']}")
    if launcher is None:
        pytest.skip("needs mpiexec")
    script = tmp_path / "sweep.py"
    script.write_text(_OF_MPI.replace("ASKED", repr(ASKED)))
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_MCA_rmaps_default_mapping_policy")
    surroundings = {**os.environ, **dict.fromkeys(names[:2], "1"), names[2]: ":oversubscribe"}

    def run(how):
        module = [] if how == "comm" else ["-m", "mpi4py.futures"]
        command = [launcher, "-n", "3", sys.executable, *module, str(script), str(tmp_path / how), how]
        return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=120, check=False)

    for how in ("pool", "comm"):
        done = run(how)
        assert done.returncode == 0, done.stderr
        assert digests(tmp_path / how) == alone
    assert run("kill").returncode != 0  # MPI ends every process with the one that died
    kept = digests(tmp_path / "kill")
    assert 0 < len(kept) < len(alone)
    gpucost.sweep(**ASKED, into=tmp_path / "kill")
    assert set(kept.items()) <= set(digests(tmp_path / "kill").items())
    assert digests(tmp_path / "kill") == alone
