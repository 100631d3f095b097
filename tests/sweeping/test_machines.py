"""The same bytes from one process, several, a cluster, and after a kill; tables of cases; files and refusals."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pandas
import pytest
from click.testing import CliRunner

import gpucost
from gpucost.cli import cli
from gpucost.errors import UsageError
from gpucost.sweeping import chunks
from gpucost.sweeping.grid import cases_of

DAY = "2026-11-20"
ASKED = {"model": "8b,70b", "gpu": "h100,b200", "gpus": "8:64:x2", "tokens": "10b:100b:10b", "as_of": DAY}


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CASES", 40)


def digests(folder):
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.parquet"))}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    usual, chunks.CASES = chunks.CASES, 40
    folder = tmp_path_factory.mktemp("alone")
    result = gpucost.sweep(**ASKED, into=folder)
    chunks.CASES = usual
    return digests(folder), result.to_frame()


@pytest.mark.slow
def test_processes_give_the_same_bytes(alone, small_chunks, tmp_path):
    gpucost.sweep(**ASKED, into=tmp_path, workers=2)
    assert digests(tmp_path) == alone[0]


@pytest.mark.slow
def test_any_executor_gives_the_same_bytes(alone, small_chunks, tmp_path):
    with ThreadPoolExecutor(3) as executor:
        gpucost.sweep(**ASKED, into=tmp_path, executor=executor)
    assert digests(tmp_path) == alone[0]


@pytest.mark.slow
def test_a_cluster_whose_worker_dies_gives_the_same_bytes(alone, small_chunks, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(**settings) as cluster:
        heard = []

        def told(done, total):
            heard.append(done)
            if len(heard) == 1:
                os.kill(next(iter(cluster.workers.values())).process.process.pid, signal.SIGKILL)

        gpucost.sweep(**ASKED, into=tmp_path, scheduler=cluster.scheduler_address, told=told)
    assert digests(tmp_path) == alone[0]
    assert heard[-1] == 160


@pytest.mark.slow
def test_a_worker_process_that_dies_is_replaced(tmp_path):
    flag = tmp_path / "died"
    found = dict(chunks.processes(2)(_die_once, ((number, (number, str(flag))) for number in range(6))))
    assert found == {number: bytes([number]) for number in range(6)}
    assert flag.exists()


def _die_once(task):
    number, flag = task
    if number == 3 and not os.path.exists(flag):
        open(flag, "w").close()
        os._exit(9)
    return bytes([number])


@pytest.mark.slow
def test_workers_that_always_die_are_said(tmp_path):
    with pytest.raises(UsageError, match="died 4 times"):
        list(chunks.processes(1)(_die, [(0, None)]))


def _die(task):
    os._exit(9)


def test_a_sweep_that_was_killed_goes_on(alone, small_chunks, tmp_path):
    script = (
        "import gpucost; from gpucost.sweeping import chunks; chunks.CASES = 40;"
        f"gpucost.sweep(**{ASKED!r}, into={str(tmp_path)!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    until = time.monotonic() + 60
    while not list(tmp_path.glob("[!.]*.parquet")) and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    process.wait()
    kept = {name: digest for name, digest in digests(tmp_path).items() if name[0] != "."}  # whole, not at hand
    heard = []
    gpucost.sweep(**ASKED, into=tmp_path, told=lambda done, total: heard.append(done))
    assert set(kept.items()) <= set(alone[0].items())
    assert digests(tmp_path) == alone[0]
    assert heard[-1] == 160


def test_workers_with_other_facts_refuse():
    from gpucost.sweeping.grid import combinations
    from gpucost.sweeping.work import SweepTask, versions_of, work

    grid = combinations("estimate", {"model": "8b", "tokens": "1b", "gpus": 8})
    versions = {**versions_of(gpucost.open_catalog(DAY)), "catalog": "2020-01-01+000000000000"}
    with pytest.raises(UsageError, match="another catalog"):
        work(SweepTask(grid, 0, 1, versions))


@pytest.mark.slow
def test_a_table_of_cases_equals_the_grid(alone, tmp_path):
    rows = alone[1][["model", "asked_gpu", "asked_gpus", "tokens"]].astype({"model": str, "asked_gpu": str})
    cases = rows.rename(columns={"asked_gpu": "gpu", "asked_gpus": "gpus"})
    cases.to_csv(tmp_path / "cases.csv", index=False)
    from_frame = gpucost.sweep(cases=cases, as_of=DAY).to_frame()
    from_file = gpucost.sweep(cases=str(tmp_path / "cases.csv"), as_of=DAY).to_frame()
    assert from_frame["cost_usd"].equals(alone[1]["cost_usd"])
    assert from_file["cost_usd"].equals(alone[1]["cost_usd"])


def test_a_cell_that_is_empty_is_not_said(tmp_path):
    cases = pandas.DataFrame({"model": ["8b", "8b"], "tokens": ["1b", "1b"], "gpu": ["h100", None], "gpus": [8, 8]})
    found = gpucost.sweep(cases=cases, as_of=DAY).to_frame()
    assert found["cost_usd"][1] <= found["cost_usd"][0]


def test_the_command_joins_chunks_into_one_file(tmp_path):
    target, page = tmp_path / "sweep.parquet", tmp_path / "sweep.json"
    asked = ["sweep", "--model", "8b", "--gpu", "h100", "--gpus", "8:32:x2", "--tokens", "1b,2b", "--as-of", DAY]
    done = CliRunner().invoke(cli, [*asked, "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert "6 cases" in done.output
    assert list(pandas.DataFrame(__import__("duckdb").read_parquet(str(target)).df())["gpus"]) == [8, 8, 16, 16, 32, 32]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["sweep.parquet"]
    assert CliRunner().invoke(cli, [*asked, "-o", str(page)]).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("gpus", [8, None]),
        ("gpus", [8.0, float("nan")]),
        ("epochs", [2, None]),
        ("deadline", [None, 9]),
        ("budget", [None, 1e6]),
        ("mfu", [0.3, None]),
        ("deadline", [pandas.Timestamp("2026-12-31"), None]),
        ("as_of", [pandas.Timestamp(DAY)] * 2),
    ],
)
def test_numbers_and_days_of_a_table_are_read_as_alone_and_empty_cells_left_out(name, cells, tmp_path):
    import duckdb

    asked = {"model": "8b", "gpu": "h100", "tokens": "1b"} | ({} if name == "as_of" else {"as_of": DAY})
    cases = pandas.DataFrame({name: cells})
    duckdb.sql(f"copy (select * from cases) to '{tmp_path / 'cases.parquet'}'")
    cases.to_csv(tmp_path / "cases.csv", index=False)
    more = {} if name == "gpus" else {"gpus": 8}
    alone = [
        gpucost.sweep(**asked, **more, **({} if pandas.isna(cell) else {name: cell})).to_frame()["cost_usd"][0]
        for cell in cells
    ]
    for table in (cases, tmp_path / "cases.parquet", tmp_path / "cases.csv"):
        found = gpucost.sweep(cases=table, **asked, **more).to_frame()
        assert found["cost_usd"].tolist() == alone


def test_words_that_begin_below_many_numbers_are_read(tmp_path):
    rows = ["8b,8"] * 30_000 + ["8b,1k"]
    (tmp_path / "cases.csv").write_text("\n".join(["model,gpus", *rows]), encoding="utf-8")
    found = gpucost.sweep(cases=tmp_path / "cases.csv", gpu="h100", tokens="1b", as_of=DAY).to_frame()
    assert found["asked_gpus"].tolist()[-2:] == [8, 1000]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,tokens,as_of\n8b,1b,2026-06-01\n8b,1b,2026-11-20\n", "--as-of: a sweep uses the prices of one day"),
        ("model,tokens,as_of\n8b,1b,2026-06-01\n8b,1b,\n", "--as-of: a sweep uses the prices of one day"),
        ("model,tokens,optimize\n8b,1b,cost\n8b,1b,pareto\n", "--optimize pareto"),
        ("model,tokens,gpus\n8b,1b,8\n8b,1b,-4\n", "cases.csv:3:gpus: -4 is not"),
        ("model,tokens\n8b,1b\n8b,\n", "cases.csv:3:tokens: is empty"),
        ("model,tokens,quak\n8b,1b,1\n", "cases.csv: estimate takes no 'quak'"),
        ("model,tokens,gpus,gpus\n8b,1b,8,8\n", "cases.csv:1:gpus: the column appears twice"),
        ("model,tokens,gpus\n8b,1b\n8b,1b,8\n", "cases.csv:2: "),
        ("8b,1b,8\n8b,1b,16\n", "cases.csv:1: must name"),
        ("model,tokens,\n8b,1b,8\n", "cases.csv:1: must name"),
        ("", "cases.csv:1: must name"),
        (f"model,,\n8b,{'x' * 140_000},1\n", "cases.csv:2: is not readable as CSV"),
    ],
)
def test_a_fault_of_a_table_is_said_with_its_file_and_row(text, said, tmp_path):
    (tmp_path / "cases.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(said)):
        gpucost.sweep(cases=tmp_path / "cases.csv", gpu="h100")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"model,tokens,,\n8b,1b,,\n", ""),
        (b" model , tokens ,  , \n 8b , 1b ,  , \n", ""),
        (b"model,tokens\n8b,1b\n,\n,\n", ""),
        (b"model,tokens,,\r\n8b,1b,,\r\n,,,\r\n", ""),
        ("model,tokens\n8b,1b\n".encode("utf-16"), "cases.csv: is UTF-16"),
        (b"model,tokens\r\n8b,1b\n8b,2b\n", "CRLF"),
        (b"model,tokens\n8b,10:00\n", "'10:00'"),
    ],
)
def test_what_a_spreadsheet_adds_to_a_table_is_left_out_or_said(raw, said, tmp_path):
    (tmp_path / "cases.csv").write_bytes(raw)
    if not said:
        columns = cases_of(str(tmp_path / "cases.csv")).columns
        assert {name: values for name, (_, values) in columns.items()} == {"model": ["8b"], "tokens": ["1b"]}
        assert all(len(codes) == 1 for codes, _ in columns.values())
        return
    with pytest.raises(UsageError, match=said):
        gpucost.sweep(cases=tmp_path / "cases.csv", gpu="h100")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--scheduler", "tcp://127.0.0.1:9"], "nothing answers"),
        (["--cases", "missing.parquet"], "no file"),
        (["--cases", "cases.txt"], "cases.txt"),
        (["--grid", "missing.toml"], "missing.toml"),
        (["--gpus", "8:4:x2"], "8:4:x2"),
        (["--into", "/proc/none"], "/proc/none"),
    ],
)
def test_wrong_input_is_a_sentence(more, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chunks, "_CONNECT_SECONDS", 0.5)
    asked = ["sweep", *(() if "--cases" in more else ("--model", "8b", "--tokens", "1b")), *more]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code != 0
    assert said in str(done.exception) + done.output


def running(number):
    """Tell whether a process is at work; one that has ended and was not fetched is not."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_sweep_whose_process_is_killed_leaves_no_worker_behind(tmp_path):
    code = """
import gpucost
if __name__ == "__main__":
    gpucost.sweep(model="8b", gpu="h100", tokens=[1e10 + i for i in range(400_000)], workers=2, into=INTO)
"""
    script = tmp_path / "sweep.py"
    script.write_text(code.replace("INTO", repr(str(tmp_path / "chunks"))))
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": os.getcwd()})
    try:
        children, deadline = [], time.monotonic() + 60
        while len(children) < 3 and time.monotonic() < deadline:  # two workers, and what tracks their resources
            time.sleep(0.2)
            listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text()
            children = [int(word) for word in listed.split()]
        time.sleep(2)
    finally:
        parent.kill()
        parent.wait()
    assert len(children) >= 2
    deadline = time.monotonic() + 20
    while any(map(running, children)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [number for number in children if running(number)] == []


@pytest.mark.slow
def test_workers_write_their_chunks_themselves(tmp_path, monkeypatch, small_chunks, alone):
    sizes = []

    def counting(work, tasks):
        for number, data in chunks.serial(work, tasks):
            sizes.append(len(data))
            yield number, data

    monkeypatch.setattr(chunks, "mapper_of", lambda *_: __import__("contextlib").nullcontext(counting))
    gpucost.sweep(**ASKED, into=tmp_path / "own")
    assert set(sizes) == {0}
    with ThreadPoolExecutor(1) as executor:
        gpucost.sweep(**ASKED, into=tmp_path / "back", executor=executor)
        gpucost.sweep(**ASKED, into=tmp_path / "shared", executor=executor, shared=True)
    assert digests(tmp_path / "own") == digests(tmp_path / "back") == digests(tmp_path / "shared")
    with pytest.raises(UsageError, match=r"needs (--into|into=)"):
        gpucost.sweep(**ASKED, shared=True)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's ways with memory")
def test_a_worker_keeps_the_memory_that_it_frees(tmp_path):
    """Under the threshold of Dask's nanny a freed array of 1 MB goes back at once, and its pages are faulted anew."""
    code = """
import resource, sys
import numpy
from gpucost.heap import keep_memory
if sys.argv[1] == "kept":
    keep_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
numpy.ones(1 << 17).sum()
before = faults()
for _ in range(50):
    numpy.ones(1 << 17).sum()
print(faults() - before)
"""
    found = {}
    for how in ("given back", "kept"):
        done = subprocess.run(
            [sys.executable, "-c", code, how], capture_output=True, text=True, check=True,
            env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536", "PYTHONPATH": os.getcwd()},
        )  # fmt: skip
        found[how] = int(done.stdout)
    assert found["kept"] < found["given back"] / 5


def test_the_first_sentence_compares_no_two_kinds_of_work():
    result = gpucost.sweep(model="8b", gpu="h100", gpus="8,16", tokens="10b:80b:10b", as_of=DAY)
    assert "8 kinds" in result.payload["lead"]
    assert "Cheapest:" not in result.payload["lead"]
    assert len({row["tokens"] for row in result.payload["front"]}) == 8


def test_a_page_and_a_workbook_hold_the_first_thousand_cases(tmp_path):
    result = gpucost.sweep(model="8b", gpu="h100", gpus="8:64:x2", tokens="10b:280b:10b", as_of=DAY)
    tables = [block for section in result.document().sections for block in section.blocks if hasattr(block, "rows")]
    assert max(len(table.rows) for table in tables) == 112


def test_a_workbook_holds_the_map_and_no_empty_sheet(tmp_path):
    import openpyxl

    asked = {"model": "8b,70b", "gpu": "h100,b200", "gpus": [8, 16, 64], "tokens": "10b", "as_of": DAY}
    result = gpucost.sweep(**asked)
    result.to_excel(tmp_path / "sweep.xlsx")
    book = openpyxl.load_workbook(tmp_path / "sweep.xlsx")
    assert "Charts" not in book.sheetnames
    rows = [[cell for cell in row if cell is not None] for row in book.worksheets[-1].iter_rows(values_only=True)]
    first = rows.index(["Lowest cost by model and GPUs"]) + 1
    assert rows[first] == ["gpus \\ model", "70b", "8b"]
    frame = result.to_frame()
    for gpus, *costs in rows[first + 1 : first + 4]:
        for model, cost in zip(("70b", "8b"), costs, strict=True):
            of_cell = frame[(frame["model"] == model) & (frame["asked_gpus"] == gpus)]
            assert cost == of_cell["cost_usd"].min()
