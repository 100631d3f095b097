"""Sweeps under MPI, where it is installed: the same bytes as in one process, and what a kill costs."""

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import gpucost
from gpucost.sweeping import chunks

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
