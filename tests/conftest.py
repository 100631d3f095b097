"""Every test runs without a network, without the user's own settings, and in an environment of its own."""

import atexit
import gc
import os
import shutil
import signal
import socket
import sys
from datetime import timedelta
from zlib import crc32

import pytest

from benchmarks.day import fixed_day
from gpucost import clock

# The programs that tests start find the checkout compiled, as an installed package is.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each worker has a core of its own: linear algebra in several threads would only wait for the neighbour's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

KEPT = ("offers-of-today.json", "history", "charts")  # in the cache folder: their names or keys say what they are
MOST_CASES = 3  # of one rule that are asked each time: the first, the last and some that are drawn
CACHES = []  # of this process, the last at the end


def pytest_addoption(parser):
    parser.addoption("--later", type=int, default=0, metavar="DAYS", help="ask so many days after the fixed day")


def pytest_configure(config):
    """Ask on one day, whatever the calendar says; a worker inherits it."""
    if not hasattr(config, "workerinput"):
        os.environ[clock.VARIABLE] = str(fixed_day() + timedelta(days=config.getoption("later")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Call slow what starts LibreOffice or a browser, before slow tests are left out.

    Of a rule with many cases, the first, the last and some drawn by their names are asked each time; `-m more` asks
    the others.

    Begin with the files that hold a slow test: the last worker at work is then not alone for long.
    """
    for item in items:
        if "require_program" in item.fixturenames:
            item.add_marker("slow")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    for cases in cases_of_each_rule(items):
        for case in sorted(cases[1:-1], key=lambda case: crc32(case.name.encode()))[MOST_CASES - 2 :]:
            case.add_marker("more")


def cases_of_each_rule(items):
    """Return the cases of each test function that has several, unless every one of them is wanted each time."""
    rules = {}
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("every"):
            rules.setdefault((item.path, item.originalname), []).append(item)
    return [cases for cases in rules.values() if len(cases) > MOST_CASES]


def pytest_collection_finish(session):
    """Spare the collector what stays to the end: modules and the tests themselves."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """End a worker that has reported everything: taking its catalogs apart piece by piece takes seconds."""
    if hasattr(config, "workerinput"):
        atexit._run_exitfuncs()
        os._exit(0)


def heed_interrupts():
    """Let a child of a suite that runs in the background, which ignores SIGINT, heed it again."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Refuse every connection; sockets between processes of this machine stay allowed."""

    def refuse(self, address, *rest):
        if self.family == getattr(socket, "AF_UNIX", None) or (
            isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1", "localhost")
        ):
            return connect(self, address, *rest)
        raise AssertionError(f"a test tried to reach {address}: no test needs a network")

    connect = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **more: _local_only(host, getaddrinfo, *rest, **more)
    )


getaddrinfo = socket.getaddrinfo


def _local_only(host, look_up, *rest, **more):
    if host in (None, "", "localhost", "127.0.0.1", "::1"):
        return look_up(host, *rest, **more)
    raise AssertionError(f"a test tried to look up {host}: no test needs a network")


def _cache(base):
    """Return a cache folder with nothing but what is kept there for all tests: the last one, if nothing was added."""
    if CACHES and {*os.listdir(CACHES[-1]), *os.listdir(CACHES[-1] / "gpucost")} == {"gpucost", *KEPT}:
        return CACHES[-1]
    cache = base / f"cache-{len(CACHES)}"
    (cache / "gpucost").mkdir(parents=True)
    for kept in KEPT:
        if kept.isalpha():
            (base / kept).mkdir(exist_ok=True)
        (cache / "gpucost" / kept).symlink_to(base / kept)
    CACHES.append(cache)
    return cache


@pytest.fixture(autouse=True)
def own_settings(monkeypatch, tmp_path_factory):
    """Hide the user's settings and book."""
    for name in list(os.environ):
        if name.startswith("GPUCOST_") and name not in ("GPUCOST_REQUIRE_PROGRAMS", clock.VARIABLE):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "no-data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(_cache(tmp_path_factory.getbasetemp())))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def require_program():
    """Return a function that finds a program; without it the test is skipped, or fails where CI demands it."""

    def require(*names):
        found = next((path for name in names if (path := shutil.which(name))), None)
        if found is None:
            reason = f"needs the program {' or '.join(names)}"
            if os.environ.get("GPUCOST_REQUIRE_PROGRAMS"):
                pytest.fail(reason)
            pytest.skip(reason)
        return found

    return require


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Return a function that runs a command beside files, and returns the sentence that refuses it."""
    from click.testing import CliRunner

    from gpucost.cli import cli
    from gpucost.errors import UsageError

    monkeypatch.chdir(tmp_path)

    def run(arguments, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text, "utf-8")
        result = CliRunner().invoke(cli, arguments, standalone_mode=False)
        assert isinstance(result.exception, UsageError), (result.exception, result.output)
        return str(result.exception)

    return run
