"""SQL from a stranger reads the catalog and can do nothing else."""

import io
import pickle
import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from gpucost.catalog import open_catalog, query
from gpucost.catalog.loader import ready_questions
from gpucost.catalog.sandbox import LENGTH, bounds
from gpucost.errors import UsageError
from gpucost.store.folder import Folder
from tests.catalog.world import world
from tests.conftest import heed_interrupts
from tests.store.parts import publish, row, write_part


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-01")


@pytest.fixture
def answered(catalog, monkeypatch):
    """Return a function that does here what the process of a query does, short of bounding itself."""
    monkeypatch.setattr(query, "_bound_process", lambda _: None)
    monkeypatch.setattr(query, "_days_without_pytz", lambda: None)
    usual = {"as_of": catalog.as_of, "known_as_of": None, "root": catalog.store.root, "layers": None, "store_at": None}

    def asked(text, **places):
        out = io.BytesIO()
        query._answer({**usual, **places}, text, bounds(), out)
        out.seek(0)
        _, columns, *chunks = (
            pickle.loads(out.read(int.from_bytes(size, "big"))) for size in iter(lambda: out.read(LENGTH), b"")
        )
        return [dict(zip(columns, row, strict=True)) for _, chunk in chunks for row in chunk]

    return asked


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n FROM offers",
        "FROM llms LIMIT 1",
        "WITH x AS (SELECT 1 AS n) SELECT * FROM x",
        "SHOW TABLES",
        "DESCRIBE offers",
        "EXPLAIN SELECT * FROM offers",
        "EXPLAIN ANALYZE SELECT 1",
        "/* a remark */ EXPLAIN SELECT 1",
        "SELECT * FROM prices_on('2025-09-01', '2025-12-31') LIMIT 1",
        "SELECT * FROM facts LIMIT 1",
        'SELECT l.id FROM llms AS l JOIN main."Aliases" AS a ON true LIMIT 1',
        "SELECT count(*) AS n FROM (SELECT 1) AS offers",
        "SELECT table_name FROM duckdb_tables() WHERE table_name = 'hosted_tokens'",
    ],
)
def test_reading_is_answered(answered, text):
    assert answered(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ready_questions())
def test_ready_questions_are_answered(answered, name):
    assert answered(ready_questions()[name].read_text("utf-8"))


@pytest.mark.slow
def test_a_process_answers_and_refuses_alike(catalog, answered):
    for text in ("SELECT count(*) AS n FROM offers", "SELECT id FROM llms ORDER BY id LIMIT 3"):
        assert catalog.ask(text).rows == answered(text)
    for text in ("DROP TABLE offers", "SELECT * FROM read_text('/etc/passwd')"):
        said = []
        for ask in (catalog.ask, answered):
            with pytest.raises(UsageError) as refusal:
                ask(text)
            said.append(str(refusal.value))
        assert said[0] == said[1]


@pytest.fixture(params=["store", "parquet", "csv"])
def outside(request, tmp_path, monkeypatch):
    """Return a world whose one price is read from a file where it lies, below a folder that looks like a pattern."""
    lying = tmp_path / "own [1]'s"
    lying.mkdir()
    places = {"root": world(tmp_path / "data"), "as_of": date(2025, 7, 1)}
    if request.param == "store":
        publish(Folder(lying), [row(2.0, "2025-06-01")], "2025-06-01")
        return {**places, "store_at": lying}
    if request.param == "parquet":
        write_part(tmp_path / "offers.parquet", [row(2.0, "2025-06-01")])
        (tmp_path / "offers.parquet").rename(lying / "offers.parquet")
    else:
        monkeypatch.setattr("gpucost.catalog.book_files.LARGE_BYTES", 0)
        text = "provider,gpu,usd_per_hour,observed_on\nacme,h100-sxm,2,2025-06-01\n"
        (lying / "offers.csv").write_text(text)
    return {**places, "layers": {"user": lying}}


@pytest.mark.slow
@pytest.mark.parametrize("view", ["prices", "book_offers", "prices_on('2025-07-01', '2025-07-01')"])
def test_prices_that_lie_in_files_are_asked_and_no_file_beside_them(answered, outside, tmp_path, view):
    assert answered(f"SELECT usd_per_hour FROM {view}", **outside) == [{"usd_per_hour": 2.0}]
    (tmp_path / "other.csv").write_text("secret")
    for name in ("other.csv", "*", "own*/*", "own*/*/*"):
        with pytest.raises(UsageError, match="Permission Error"):
            answered(f"SELECT * FROM read_text('{tmp_path / name}'), {view}", **outside)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE offers",
        "DELETE FROM offers",
        "INSERT INTO aliases VALUES ('a', 'b', 'c', 'd')",
        "UPDATE offers SET usd_per_hour = 1",
        "CREATE TABLE x AS SELECT 1",
        "WITH gone AS (DELETE FROM llms RETURNING *) SELECT * FROM gone",
        "EXPLAIN DROP TABLE offers",
        "EXPLAIN ANALYZE DROP TABLE offers",
        "EXPLAIN ANALYZE DELETE FROM offers",
        "SELECT 1; DROP TABLE offers",
        "COPY offers TO '{folder}/stolen.csv'",
        "EXPORT DATABASE '{folder}/stolen'",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA threads=4",
        "SET enable_external_access = true",
        "CALL pragma_version()",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "SELECT * FROM 's3://bucket/x.parquet'",
        "SELECT * FROM query('DROP TABLE offers')",
        "SELEC 1",
        "SELECT nothing FROM offers",
        "",
        ";",
    ],
)
def test_everything_else_is_refused_in_one_sentence(answered, text, tmp_path):
    with pytest.raises(UsageError) as error:
        answered(text.format(folder=tmp_path))
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_what_was_refused_changed_nothing(catalog):
    assert catalog.sql("SELECT count(*) AS n FROM offers")[0]["n"] > 1700


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM range(100000000000) AS a, range(100000) AS b",
        "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT max(n) FROM x",
    ],
)
def test_what_never_ends_is_stopped(catalog, text):
    start = time.perf_counter()
    with pytest.raises(UsageError, match=r"stopped after 0\.5 s|memory"):
        catalog.ask(text, time_limit_s=0.5)
    assert time.perf_counter() - start < 60


@pytest.mark.slow
def test_too_many_rows_and_too_much_memory_are_refused(catalog):
    with pytest.raises(UsageError, match="rows"):
        catalog.ask("SELECT * FROM range(3000000)")
    with pytest.raises(UsageError, match="memory"):
        catalog.ask("SELECT list(i) FROM range(100000000) AS t(i)", memory_limit_gb=0.1)


def test_columns_of_one_name_are_all_kept(catalog):
    assert catalog.ask("SELECT 1 AS a, 2 AS a").rows == [{"a": 1, "a_2": 2}]
    assert catalog.ask("SELECT 1 AS a, 2 AS a_2, 3 AS a").rows == [{"a": 1, "a_2": 2, "a_3": 3}]


def test_more_cells_than_a_writer_holds_in_memory_are_refused(catalog):
    wide = ", ".join(f"range + {number} AS c{number}" for number in range(20))
    with pytest.raises(UsageError, match=r"5,000,000 cells.*limit_query_cells"):
        catalog.ask(f"SELECT {wide} FROM range(250001)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "reason", "seconds"),
    [
        ("SELECT repeat('x', 100000) FROM range(100000)", "MB", 60),
        ("SELECT length(repeat('x', 3000000000))", "memory", 60),  # the database's own limit lets it take 5.8 GB
        ("SELECT list(repeat('x', 1000)) FROM range(10000000) GROUP BY range % 3", "memory|MB", 60),
        ("SELECT count(*) FROM range(60000) a JOIN range(60000) b ON a.range * 7 % 11 < b.range % 13", "stopped", 1),
    ],
)
def test_a_query_takes_no_more_than_its_bounds(catalog, text, reason, seconds):
    """Strings of 10 GB, lists, and joins that do not listen to an interrupt: ended in time, in little memory."""
    import resource

    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with pytest.raises(UsageError, match=reason):
        catalog.ask(text, time_limit_s=seconds, memory_limit_gb=0.3)
    assert time.perf_counter() - start < seconds + 60
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(before, 2_500_000)  # kB, of other tests too


@pytest.mark.parametrize("text", [None, 5, b"SELECT 1"])
def test_a_query_is_a_text(catalog, text):
    with pytest.raises(UsageError, match="text"):
        catalog.ask(text)


@pytest.mark.parametrize("limit", ["nan", "inf", "-inf", "1e10", "0", "-1", "soon"])
def test_a_limit_that_limits_nothing_is_refused(catalog, limit):
    with pytest.raises(UsageError, match=r"limit_query_seconds: .* 3,600 seconds"):
        catalog.ask("SELECT 1", time_limit_s=limit)


def test_a_moment_is_answered_in_utc_without_further_packages(catalog):

    row = catalog.ask("SELECT now() AS moment, [now()] AS several, current_setting('TimeZone') AS zone").rows[0]
    assert row["zone"] == "UTC"
    for moment in (row["moment"], *row["several"]):
        assert moment.tzname() == "UTC"
        assert moment.utcoffset() == timedelta(0)


def test_an_interrupted_query_ends_as_interrupted_and_leaves_no_process(tmp_path):
    import os
    import signal
    import subprocess
    import sys

    endless = "SELECT count(*) FROM range(100000000000) a, range(100000) b"
    command = [sys.executable, "-m", "gpucost", "sql", "--time-limit", "120", endless]
    asked = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=heed_interrupts)
    children = Path(f"/proc/{asked.pid}/task/{asked.pid}/children")
    try:
        until = time.monotonic() + 60
        while not (found := children.read_text().split()) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1)
        os.kill(asked.pid, signal.SIGINT)
        assert asked.wait(timeout=60) == 130
        assert "internal" not in asked.stderr.read().decode()
        assert found
        assert not os.path.exists(f"/proc/{found[0]}")
    finally:
        asked.kill()
        asked.wait()
        asked.stderr.close()


@pytest.mark.parametrize("sign", ["SIGKILL", "SIGSTOP"])
def test_a_query_does_not_outlive_the_one_who_asks(sign):
    import os
    import signal
    import subprocess
    import sys

    endless = "SELECT pg_sleep(3000)"  # takes no time of a processor
    asked = subprocess.Popen([sys.executable, "-m", "gpucost", "sql", "--time-limit", "3", endless])
    children = Path(f"/proc/{asked.pid}/task/{asked.pid}/children")
    try:
        until = time.monotonic() + 60
        while not (found := children.read_text().split()) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2)  # until its clock runs
        os.kill(asked.pid, getattr(signal, sign))
        child = Path(f"/proc/{found[0]}/stat")
        while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < until:
            time.sleep(0.1)
        assert not child.exists() or child.read_text().split()[2] == "Z"
    finally:
        asked.kill()
        asked.wait()


@pytest.mark.slow
def test_ctrl_c_while_the_engine_works_in_this_process_is_no_internal_error():
    import signal
    import subprocess
    import sys

    work = """
import sys, duckdb, gpucost.cli.lists as lists
from gpucost.cli import main
def ask(**_):
    print("begun", flush=True)
    duckdb.sql("SELECT sum(a * a % 7) FROM range(1500000000) t(a)").fetchall()
lists.sources.callback = ask
sys.argv = ["gpucost", "data", "sources"]
main()"""
    command = [sys.executable, "-c", work]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts) as asked:
        assert asked.stdout.readline() == b"begun\n"
        time.sleep(0.3)
        asked.send_signal(signal.SIGINT)
        assert asked.wait(timeout=60) == 130
        assert asked.stderr.read() == b""


@pytest.mark.parametrize(("sign", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_what_the_catalog_s_database_does(sign, code):
    """A book of ten million rows is judged for half a minute: a person who waits may stop it."""
    import signal
    import subprocess
    import sys

    work = """
import sys, gpucost.cli.lists as lists
from pathlib import Path
from gpucost.catalog.loader import Store
from gpucost.cli import run
def ask(**_):
    print("begun", flush=True)
    Store(Path("pricing")).execute("CREATE TABLE x AS SELECT sum(a * a % 7) FROM range(10000000000) t(a)")
lists.sources.callback = ask
sys.argv = ["gpucost", "data", "sources"]
run()"""
    command = [sys.executable, "-c", work]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts) as asked:
        assert asked.stdout.readline() == b"begun\n"
        time.sleep(0.5)
        asked.send_signal(getattr(signal, sign))
        began = time.monotonic()
        assert asked.wait(timeout=60) == code
        assert time.monotonic() - began < 5
        assert asked.stderr.read() in (b"", b"\ngpucost: interrupted\n")


@pytest.mark.parametrize(
    "query",
    [
        "select repeat(chr(1), 1000) from range(250000)",
        "select repeat('\"', 1000) from range(250000)",
        f"select 1 as {'x' * 2000} from range(200000)",
    ],
)
def test_a_result_is_bounded_as_it_is_written(query, monkeypatch):
    """An escape takes six signs, and each row of JSON repeats the names of its columns."""
    monkeypatch.setenv("GPUCOST_LIMIT_QUERY_RESULT_BYTES", "2e7")
    from gpucost.catalog import open_catalog

    began = time.monotonic()
    with pytest.raises(UsageError, match="20 MB"):
        open_catalog().ask(query)
    assert time.monotonic() - began < 20
