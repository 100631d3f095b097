"""Files are written whole, only where a regular file may stand, and nothing is left behind."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial

import duckdb
import pytest

from gpucost.errors import UsageError
from gpucost.store import files
from gpucost.store.files import SpareFolder, put_parquet, replacing, write_text


@pytest.mark.parametrize("direct", [True, False])
def test_a_pipe_or_a_device_is_never_replaced(tmp_path, direct):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/null"):
        link = tmp_path / "link.txt"
        link.unlink(missing_ok=True)
        link.symlink_to(place)
        with pytest.raises(UsageError, match="pipe"):
            write_text(place if direct else link, "text")
        assert not os.path.isfile(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.txt", "pipe"]


def test_a_link_to_a_file_is_written_through(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new\n"


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    code = "import sys, time\nfrom gpucost.store.files import replacing\nwith replacing(sys.argv[1]) as path:\n"
    code += "    path.write_text('half'); print('ready', flush=True); time.sleep(60)\n"
    command = [sys.executable, "-c", code, str(tmp_path / "report.html")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()}) as writer:
        assert writer.stdout.readline() == b"ready\n"
        write_text(tmp_path / "report.html", "first")  # the living writer's file stays
        assert len(list(tmp_path.iterdir())) == 2
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    write_text(tmp_path / "report.html", "second")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_next_reader_removes_a_killed_one_s_folder(tmp_path, monkeypatch):
    code = "import time, pathlib\nfrom gpucost.store.files import SpareFolder\nwith SpareFolder() as path:\n"
    code += "    pathlib.Path(path, 'half').touch(); print('ready', flush=True); time.sleep(60)\n"
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "TMPDIR": str(tmp_path)}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as reader:
        assert reader.stdout.readline() == b"ready\n"
        with SpareFolder() as own:
            assert len(list(tmp_path.iterdir())) == 2  # the living reader's folder stays
        assert not os.path.exists(own)
        reader.send_signal(signal.SIGKILL)
        reader.wait()
    (tmp_path / "gpucost-folder-0-link").symlink_to(tmp_path.parent)  # somebody else's trap
    with SpareFolder() as own:
        assert {path.name for path in tmp_path.iterdir()} == {os.path.basename(own), "gpucost-folder-0-link"}


@pytest.mark.parametrize("age_s", [10, 100])
def test_what_a_killed_one_left_is_removed_once_its_number_is_another_process_s(tmp_path, age_s):
    left = tmp_path / ".report.html.part-1-half.html"
    left.touch()
    os.utime(left, (time.time() - age_s,) * 2)
    write_text(tmp_path / "report.html", "whole")
    assert left.exists() == (age_s < 60)  # a new one may not have its lock yet


@pytest.mark.parametrize(("sign", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_program_that_is_ended_leaves_no_temporary_files(tmp_path, sign, code):
    script = "import sys, time, gpucost.cli as cli\nfrom gpucost.store.files import SpareFolder, replacing\n"
    script += "def main():\n    with replacing(sys.argv[1]), SpareFolder():\n"
    script += "        print('ready', flush=True); time.sleep(60)\ncli.main = main; cli.run()\n"
    command = [sys.executable, "-c", script, str(tmp_path / "report.html")]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "TMPDIR": str(tmp_path)}
    heeds = partial(signal.signal, getattr(signal, sign), signal.SIG_DFL)  # nohup has it ignored
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, preexec_fn=heeds) as writer:
        assert writer.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 2
        writer.send_signal(getattr(signal, sign))
        assert writer.wait(timeout=60) == code
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_at_any_line_before_the_writing_leaves_no_temporary_file(tmp_path):
    def interrupted_at(number):
        seen = 0

        def trace(frame, event, _):
            nonlocal seen
            if frame.f_code.co_filename != files.__file__:
                return None
            seen += event == "line"
            if event == "line" and seen == number:
                raise KeyboardInterrupt
            return trace

        writer = replacing(tmp_path / "report.html")
        sys.settrace(trace)
        try:
            writer.__enter__()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        writer.__exit__(None, None, None)
        (tmp_path / "report.html").unlink()
        return False

    number = 1
    while interrupted_at(number):
        assert list(tmp_path.iterdir()) == [], number
        number += 1
    assert number > 20


@pytest.mark.parametrize("path", [5, [], None, b"a.txt"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(UsageError, match="a path"):
        write_text(path, "text")


def test_a_full_temporary_folder_is_told_from_a_full_target(tmp_path, monkeypatch):
    def full(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    with pytest.raises(UsageError, match="TMPDIR"), replacing(tmp_path / "a.xlsx"):
        full()
    monkeypatch.setattr(files, "_free_bytes", lambda folder: 0 if folder.name == "full" else 10**9)
    (tmp_path / "full").mkdir()
    with pytest.raises(UsageError, match="full"), replacing(tmp_path / "full/a.xlsx"):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs a second file system")
def test_no_space_for_temporary_files_is_not_blamed_on_the_target(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    monkeypatch.setattr(files, "_free_bytes", lambda folder: 0 if str(folder) == "/dev/shm" else 10**9)
    if os.stat("/dev/shm").st_dev == tmp_path.stat().st_dev:
        pytest.skip("one file system")
    with pytest.raises(UsageError, match="TMPDIR"), replacing(tmp_path / "a.xlsx"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_database_writes_into_the_file_that_it_is_given(tmp_path):
    """A file of its own beside it would stay when the program is killed, under a name that nobody looks for."""
    target = tmp_path / ".out.part-1"
    target.touch()
    seen = set()

    def look(number):
        seen.update(os.listdir(tmp_path))
        return number

    class Connection:
        def execute(self, sql):
            connection = duckdb.connect()
            connection.create_function(
                "look", lambda n: (seen.update(os.listdir(tmp_path)), n)[1], ["BIGINT"], "BIGINT"
            )
            connection.execute(sql.replace("rows_of_it", "look(range)"))

    put_parquet(Connection(), "SELECT rows_of_it FROM range(5000)", target)
    assert seen == {target.name}
