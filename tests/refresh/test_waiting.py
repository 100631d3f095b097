"""A refresh, and any command with a published store, against servers that keep it waiting: it ends in its time."""

import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.fuzz.waits import BEHAVIOURS, served
from gpucost.catalog import open_catalog
from gpucost.errors import GpuCostError
from gpucost.limits import Deadline
from gpucost.refresh.run import RefreshOptions, refresh
from gpucost.store.folder import Folder
from gpucost.store.remote import fetched
from tests.conftest import heed_interrupts


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-20")


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_refresh_ends_in_its_time_whatever_the_server_does(behaviour, catalog, tmp_path):
    folder = Folder(tmp_path / "store")
    with served(behaviour) as address:
        began = time.monotonic()
        outcomes, snapshot = refresh(catalog, folder, ["azure", "oci"], RefreshOptions(mirror=address, seconds=1))
        assert time.monotonic() - began < 15, "a busy machine; a server here keeps one for 20 s and more"
    assert {item.state for item in outcomes} == {"failed"}
    assert snapshot is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_published_store_is_given_up_in_its_time_whatever_the_server_does(behaviour, tmp_path):
    with served(behaviour) as address:
        began = time.monotonic()
        try:
            said = fetched(f"{address}/p", tmp_path / "cache", deadline=Deadline(0.6)).faults
        except GpuCostError as error:
            said = [str(error)]
        assert said
        assert all(text.isprintable() for text in said)
        assert time.monotonic() - began < 15, "a busy machine; a server here keeps one for 20 s and more"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("sign", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_refresh_that_waits_ends_when_it_is_told_to(sign, code, tmp_path):
    with served("dripping_body") as address:
        command = [sys.executable, "-m", "gpucost", "prices", "refresh", "--from", "azure", "--mirror", address]
        command += ["--store", str(tmp_path / "store")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=heed_interrupts) as asked:
            until = time.monotonic() + 60
            while not list(tmp_path.glob("store/tmp/*/0")) and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(0.3)
            asked.send_signal(getattr(signal, sign))
            began = time.monotonic()
            assert asked.wait(timeout=60) == code
            assert time.monotonic() - began < 10, "a busy machine; the server drips for 20 s"
            assert b"Traceback" not in asked.stderr.read()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("after_s", [0.05, 0.1, 0.15, 0.2, 0.3])
def test_an_interrupt_while_the_program_is_loaded_shows_no_traceback(after_s):
    """Before that the interpreter and the package's first file are read; what they say of it is Python's own."""
    marked = (
        "import os, sys; sys.argv = ['gpucost', 'gpus']; from gpucost.__main__ import run; os.write(1, b'.'); run()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", marked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts
    ) as asked:
        assert os.read(asked.stdout.fileno(), 1) == b"."
        time.sleep(after_s)
        asked.send_signal(signal.SIGINT)
        _, said = asked.communicate(timeout=60)
        assert asked.returncode in (0, 130)
        assert b"gpucost/cli" not in said
        assert b"gpucost/catalog" not in said


def test_an_interrupt_that_a_library_turns_into_its_own_error_is_an_interrupt():
    """As extension modules do while they load: an ImportError is all that comes out of them."""
    marked = """if True:
        import os, signal
        import gpucost.cli as program
        def loading(**_):
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("initialization failed") from None
        program.cli.main = loading
        program.run()"""
    asked = subprocess.run([sys.executable, "-c", marked], capture_output=True, preexec_fn=heed_interrupts)
    assert (asked.returncode, asked.stderr) == (130, b"")


def test_a_published_store_that_swells_takes_no_memory(tmp_path, monkeypatch):
    """Two million bytes on the wire that unpack to two billion: they are counted as they come."""
    import tracemalloc

    monkeypatch.setenv("GPUCOST_LIMIT_REFRESH_BYTES", "2e7")
    with served("swelling") as address:
        tracemalloc.start()
        try:
            with pytest.raises(GpuCostError):
                fetched(f"{address}/p", tmp_path / "cache")
            assert tracemalloc.get_traced_memory()[1] < 40_000_000
        finally:
            tracemalloc.stop()
