"""Refreshing as a user meets it: each source alone, what is doubtful held back, what is hostile refused."""

import csv
import json
import os
import pty
import subprocess
import sys
import threading
from datetime import date, timedelta

import pytest
from click.testing import CliRunner

from gpucost import clock
from gpucost.cli import cli
from gpucost.errors import UnknownNameError, UsageError
from gpucost.store.folder import Folder
from tests.catalog.world import offer
from tests.refresh.server import Server, send, throttled
from tests.store.parts import publish

COLUMNS = ("provider", "instance_type", "gpu", "gpus", "region", "option", "usd_per_hour")
H100 = {"provider": "acme", "gpu": "H100 SXM", "gpus": 8, "region": "mars-1", "option": "on_demand"}


def table(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, sorted({name for row in rows for name in row}))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def machine(usd=24.0, name="big", **more):
    return {**H100, "instance_type": name, "usd_per_hour": usd, **more}


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a command of `prices` on a store of its own and returns exit code and text."""

    def asked(*words):
        result = CliRunner().invoke(cli, ["prices", *words, "--store", str(tmp_path / "store")])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return asked


@pytest.fixture
def refresh(run, tmp_path):
    """Return a function that refreshes from rows of a file and returns the one source's outcome."""

    def asked(rows, *words):
        file = table(tmp_path / "list.csv", rows)
        code, text = run("refresh", "--from", file, "--format", "json", *words)
        found = json.loads(text[text.index("{") :])["rows"][0]
        return {**found, "code": code}

    return asked


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """Return a function that asks one of the views of prices for those of the provider of these tests, by product."""
    monkeypatch.setenv("GPUCOST_STORE", str(tmp_path / "store"))

    def asked(*words):
        result = CliRunner().invoke(cli, ["prices", *words, "--provider", "acme", "--format", "json"])
        assert result.exit_code == 0, result.output
        return sorted(json.loads(result.stdout)["rows"], key=lambda row: row.get("instance_type") or "")

    return asked


@pytest.mark.slow
def test_what_was_new_changed_and_gone_is_said(refresh):
    first = refresh([machine(24.0), machine(6.0, "small", gpus=2), machine(12.0, "mid", gpus=4)])
    assert (first["state"], first["new"], first["changed"], first["gone"]) == ("published", 3, 0, 0)
    second = refresh([machine(25.0), machine(6.0, "small", gpus=2), machine(3.1, "tiny", gpus=1)])
    assert (second["new"], second["changed"], second["same"], second["gone"]) == (1, 1, 1, 1)
    third = refresh([machine(25.0), machine(6.0, "small", gpus=2), machine(3.1, "tiny", gpus=1)])
    assert (third["same"], third["gone"]) == (3, 0)


@pytest.mark.slow
def test_a_move_over_forty_percent_is_held_back_until_accepted(refresh, tmp_path):
    refresh([machine(24.0), machine(6.0, "small", gpus=2)])
    assert refresh([machine(16.0), machine(6.0, "small", gpus=2)])["changed"] == 1, "a third less passes"
    held = refresh([machine(9.0), machine(6.0, "small", gpus=2)])
    assert held["held"] == {"moved by more than 40 %": 1}
    assert held["rows"] == 2, "the earlier price stays"
    assert refresh([machine(9.0), machine(6.0, "small", gpus=2)], "--accept")["changed"] == 1


@pytest.mark.slow
def test_doubtful_rows_wait_while_good_ones_are_published_and_one_is_taken_by_its_id(refresh, run, acme):
    refresh([machine(24.0), machine(6.0, "small", gpus=2)])
    outcome = refresh([machine(9.0), machine(2.0, "small", gpus=2), machine(3.1, "tiny", gpus=1)])
    assert (outcome["state"], outcome["new"], outcome["held"]) == ("published", 1, {"moved by more than 40 %": 2})
    code, text = run("waiting", "--format", "json")
    rows = json.loads(text[text.index("{") : text.rindex("}") + 1])["rows"]
    assert code == 0
    assert {(row["instance_type"], row["was"], row["price"]) for row in rows} == {("big", 24, 9), ("small", 6, 2)}
    big = next(row["row_id"] for row in rows if row["instance_type"] == "big")
    assert run("accept", big)[0] == 0
    assert {row["instance_type"]: row["usd_per_hour"] for row in acme()} == {"big": 9, "small": 6, "tiny": 3.1}
    _, text = run("waiting", "--format", "json")
    assert [row["instance_type"] for row in json.loads(text[text.index("{") : text.rindex("}") + 1])["rows"]] == [
        "small"
    ]
    with pytest.raises(UnknownNameError):
        run("accept", big)


@pytest.mark.slow
def test_a_source_of_which_everything_waits_has_not_failed(refresh):
    refresh([machine(24.0)])
    outcome = refresh([machine(9.0)])
    assert (outcome["code"], outcome["state"], outcome["rows"]) == (0, "published", 1)


@pytest.mark.slow
def test_a_first_spot_price_below_its_on_demand_price_is_taken(refresh):
    rows = [machine(24.0), machine(3.0, "other", gpus=1), machine(8.0, option="spot")]
    assert refresh(rows)["held"] == {}
    assert "spot at the price of on demand" in refresh([*rows[:2], machine(24.0, option="spot")])["held"]


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        ([machine(16.0, option="spot"), machine(15.0)], {"spot above on demand", "on demand below spot"}),
        ([machine(16.0, option="reserved", term_months=12), machine(15.0)], {"a commitment above on demand"}),
        ([machine(240.0)], {"new, and far from what the chip costs in its kind"}),
        ([machine(24.0, provider="aws", region="mars-1")], {"a region that is not known"}),
        ([machine(9.0, gpu="K80", gpus=1, name="old")], {"new, and far from what the chip costs in its kind"}),
    ],
)
def test_a_price_that_its_own_kind_contradicts_waits(refresh, rows, reasons):
    found = refresh([*rows, machine(3.0, "other", gpus=1)])
    assert reasons <= set(found["held"]), found["held"]


@pytest.mark.slow
def test_a_spot_price_of_a_refresh_is_held_against_the_list_price_of_another(refresh):
    refresh([machine(15.0), machine(3.0, "other", gpus=1)])
    assert "spot above on demand" in refresh([machine(16.0, option="spot"), machine(3.0, "other", gpus=1)])["held"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([machine(24.0 / 730)], "divided by the hours of a month once too often"),
        ([machine(19.0 * 730)], "the price of a month as one of an hour"),
        ([machine(3.0, "one", gpus=1), machine(3.0)], "the price of one accelerator as one of the node"),
        ([machine(3.0, "one", gpus=1), machine(192.0)], "the price of the node as one of each accelerator"),
        ([machine(24.0), machine(24.0, option="spot")], "spot at the price of on demand"),
        ([machine(2.4)], "a host without its accelerators"),
    ],
)
def test_the_known_faults_of_catalogues_are_held_back(refresh, rows, reason):
    assert reason in refresh([*rows, machine(14.0, "other", gpus=4)])["held"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (machine(0.0), "price of $0"),
        (machine("nan"), "no finite price"),
        (machine(1e308), "price beyond all bounds"),
        (machine("inf"), "no finite price"),
        (machine(-3.0), "negative price"),
        (machine("dear"), "no price"),
        (machine(24.0, gpus=0), "no count of accelerators"),
        (machine(24.0, gpu="H9000"), "accelerator not known"),
        (machine(24.0, "x" * 300), "unreadable name"),
        (machine(24.0, "a\x1b[31mb"), "unreadable name"),
        (machine("=1+1"), "no price"),
        (machine("=A1*2"), "no price"),
        (machine(24.0, "a\x00b"), "unreadable name"),
        (machine(24.0, option="barter"), "unknown purchase option"),
        (machine(24.0, meter="NDsr Windows"), "windows meter"),
        (machine(24.0, gpus=8.6), "no count of accelerators"),
        (machine(24.0, option="reserved", term_months=12.5), "no count of months"),
        (machine(24.0, option="reserved", term_months="1yr"), "no count of months"),
        (machine(24.0, upfront_usd=100), "paid at the start without a term"),
        (machine("", upfront_usd=100), "paid at the start without a term"),
        (machine("", upfront_usd=0), "no price"),
        (machine(24.0, option="reserved", term_months=12, upfront_usd="5,000"), "no finite price"),
        (machine("1,200", option="reserved", term_months=12, upfront_usd=5000), "no finite price"),
        (machine(1e-300), "usd_per_hour is not a finite number above 0, at most 100000"),
        (machine(24.0, "=A1"), "instance_type is not a text"),
        (machine(24.0, payment="foo"), "unknown way of payment"),
    ],
)
def test_what_cannot_be_a_price_is_left_out(refresh, row, reason):
    found = refresh([row, *(machine(3.0 * n, f"ok{n}", gpus=n) for n in (1, 2, 4))])
    assert found["left"] == {reason: 1}
    assert found["rows"] == 3


@pytest.mark.parametrize("cells", [{"vcpus": 0}, {"memory_gib": 0}, {"memory_gib": "nan"}, {"vcpus": -1}])
def test_a_price_is_none_the_worse_for_what_is_said_wrongly_beside_it(refresh, acme, cells):
    refresh([machine(24.0, **cells), machine(6.0, "small", gpus=2, vcpus=8, memory_gib=64)])
    assert [(row["instance_type"], row["usd_per_hour"]) for row in acme()] == [("big", 24.0), ("small", 6.0)]


def test_a_price_of_an_accelerator_that_its_source_names_loosely_is_shown_and_spoils_no_other(refresh, acme):
    refresh([machine(24.0, gpu="H100"), machine(6.0, "small", gpus=2)])
    loose, exact = acme()
    assert (loose["usd_per_hour"], loose["rankable"]) == (24.0, False)
    assert {"h100-sxm5-80gb", "h100-pcie-80gb"} <= set(loose["gpu_candidates"])
    assert (exact["usd_per_hour"], exact["rankable"]) == (6.0, True)


@pytest.mark.slow
def test_of_two_refreshes_on_one_day_the_later_speaks_in_every_view(refresh, acme):
    refresh([machine(20.0), machine(21.0, "small")])
    assert [row["facts"] for row in acme("coverage")] == [2]
    refresh([machine(24.0)])
    days = [str(clock.today() - timedelta(days=1)), str(clock.today())]
    said = [(row["instance_type"], row["usd_per_gpu_hour"]) for row in (*acme(), *acme("history"))]
    assert said == [("big", 3.0)] * 2
    said = [(row["instance_type"], row["new_usd_per_gpu_hour"]) for row in acme("diff", *days, "--all")]
    assert said == [("big", 3.0)]
    assert [row["facts"] for row in acme("coverage")] == [1]


@pytest.mark.slow
def test_a_spoilt_row_of_an_earlier_refresh_is_not_published_again(refresh, acme, tmp_path):
    spoilt = offer("acme/spoilt", 2.0, "2026-11-01", source_id="file-list-at-2026-11-01", vcpus=0, region="mars-2")
    publish(Folder(tmp_path / "store"), [spoilt], "2026-11-01", "file-list")
    assert refresh([machine(24.0)])["rows"] == 1
    assert [row["usd_per_hour"] for row in acme()] == [24.0]


@pytest.mark.slow
def test_a_source_that_lists_far_less_publishes_nothing(refresh):
    many = [machine(24.0, f"m{i}") for i in range(40)]
    refresh(many)
    found = refresh(many[:20])
    assert (found["state"], found["code"]) == ("failed", 5)
    assert "20 offers of acme" in found["reason"]
    assert "40 hold today" in found["reason"]


@pytest.mark.slow
def test_a_source_that_lists_far_less_of_one_kind_publishes_nothing(refresh):
    plain = [machine(24.0, f"m{i}") for i in range(40)]
    spot = [machine(12.0, f"m{i}", option="spot") for i in range(40)]
    refresh([*plain, *spot])
    found = refresh([*plain, *spot[:20]])
    assert (found["state"], found["code"]) == ("failed", 5)
    assert "acme (spot)" in found["reason"]
    assert refresh([*plain, *spot[:30]])["state"] == "published"


def test_each_source_succeeds_or_fails_alone(run, tmp_path):
    good = table(tmp_path / "good.csv", [machine(24.0)])
    bad = table(tmp_path / "bad.csv", [{"provider": "acme"}])
    code, text = run("refresh", "--from", good, "--from", bad, "--format", "json")
    states = {row["source"]: row["state"] for row in json.loads(text[text.index("{") :])["rows"]}
    assert states == {"file-good": "published", "file-bad": "failed"}
    assert code == 5


def test_a_plain_refresh_succeeds_where_one_source_fails_and_another_does_not(run, monkeypatch):
    """Nobody named the source that failed: its failure is said, and the exit code is that of a refresh that worked."""
    from gpucost.refresh import run as module
    from gpucost.refresh.registry import SOURCES as all_sources

    monkeypatch.setattr(module, "SOURCES", {name: all_sources[name] for name in ("oci", "vast")})
    offer = {"gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 24564, "dph_total": 0.14, "geolocation": "Texas, US"}
    with Server({"/console.vast.ai/api/v0/bundles/": {"offers": [offer]}}) as server:
        code, text = run("refresh", "--mirror", server.url)
        assert code == 0, text
        assert "oci: failed" in " ".join(text.split())
        assert run("refresh", "--from", "oci", "--from", "vast", "--mirror", server.url)[0] == 5
        server.routes.clear()
        assert run("refresh", "--mirror", server.url)[0] == 5, "nothing came at all"


def oci_product(name, usd):
    money = [{"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": usd}]}]
    return {
        "partNumber": "B1",
        "displayName": name,
        "metricName": "GPU Per Hour",
        "currencyCodeLocalizations": money,
    }


def test_what_nobody_can_read_is_listed_and_ends_no_offer(run):
    """The list price of H100 gets a name that is not known: its offer stays, with the day on which it was last seen."""
    path, a100 = "/apexapps.oracle.com/pls/apex/cetools/api/v1/products/", oci_product("Compute - GPU - A100 - v2", 4.0)

    def refreshed(*names):
        with Server({path: {"items": [a100, *(oci_product(name, 10.0) for name in names)]}}) as server:
            code, text = run("refresh", "--from", "oci", "--mirror", server.url, "--format", "json")
        assert code == 0, text
        return json.loads(text[text.index("{") :])["rows"][0]

    first = refreshed("Compute - GPU - H100")
    assert (first["gone"], first["unknown"]) == (0, 0)
    _, text = run("unknown", "--format", "json")
    assert json.loads(text[text.index("{") :])["rows"] == []
    second = refreshed("Compute - GPU - Hopper 100")
    assert (second["gone"], second["unknown"], second["rows"]) == (0, 1, first["rows"])
    (row,) = json.loads(run("unknown", "--format", "json")[1])["rows"]
    assert row["description"] == "B1 Compute - GPU - Hopper 100"
    assert (row["usd_per_hour"], row["first_seen_on"]) == (10.0, str(clock.today()))


def test_an_offer_that_is_gone_while_an_old_unknown_stays_is_gone(tmp_path):
    """What nobody could read while the offer was still listed is not the offer."""
    from gpucost.catalog import open_catalog
    from gpucost.refresh.known import known_of
    from gpucost.refresh.registry import SOURCES as all_sources
    from gpucost.refresh.run import RefreshOptions, refresh_one

    known, folder = known_of(open_catalog("2026-11-22")), Folder(tmp_path / "store")
    strange = oci_product("Compute - GPU - R400", 30.0)
    path, a100 = "/apexapps.oracle.com/pls/apex/cetools/api/v1/products/", oci_product("Compute - GPU - A100 - v2", 4.0)
    found = []
    for number, items in enumerate(([a100, oci_product("Compute - GPU - H100", 10.0), strange], [a100, strange])):
        earlier = {(part.kind, part.source): file for _, part, file in folder.newest()}
        with Server({path: {"items": items}}) as server:
            wish = RefreshOptions(mirror=server.url, pause=lambda _: None)
            today = date(2026, 11, 23 + number)
            outcome = refresh_one(all_sources["oci"], known, earlier, tmp_path / str(number), wish, today)
        with folder.workplace() as place:
            for part in outcome.parts:
                folder.adopt(tmp_path / part.sha256)
            folder.publish(outcome.parts, place)
        found.append((outcome.verdict.gone, outcome.verdict.unknown))
    assert found == [(0, {"description not known": 1}), (1, {"description not known": 1})]


@pytest.mark.slow
def test_a_refreshed_price_reaches_every_answer(run, tmp_path, monkeypatch):
    run("refresh", "--from", table(tmp_path / "a.csv", [machine(2.0 * 8)]))
    monkeypatch.setenv("GPUCOST_STORE", str(tmp_path / "store"))
    snapshot = Folder(tmp_path / "store").snapshots[-1]
    asked = ["prices", "--provider", "acme", "--format", "json"]
    found = json.loads(CliRunner().invoke(cli, asked).stdout)
    assert [row["book"] for row in found["rows"]] == ["refreshed"]
    assert snapshot.id in found["catalog_version"]
    asked = ["estimate", "--model", "8b", "--tokens", "1b", "--provider", "acme", "--format", "json"]
    found = json.loads(CliRunner().invoke(cli, asked).stdout)
    assert found["options"][0]["provider"] == "acme"
    assert snapshot.id in found["catalog_version"]


@pytest.mark.slow
def test_columns_of_a_file_are_mapped(run, tmp_path):
    file = table(tmp_path / "quote.csv", [{"Hourly, USD": "24", "Chip": "H100 SXM", "Cards": 8, "Site": "mars-1"}])
    words = [
        "--map",
        "usd_per_hour=Hourly, USD",
        "--map",
        "listed_as=Chip",
        "--map",
        "gpus=Cards",
        "--map",
        "provider==acme",
    ]
    code, text = run("refresh", "--from", file, *words)
    assert code == 0, text
    code, text = run("refresh", "--from", file, "--map", "usd_per_hour=Hourly")
    assert "has no column 'Hourly'" in text
    with pytest.raises(UsageError, match=r"(--map|map=): 'gpus' is given twice, as 'Cards' and as 'Hourly, USD'"):
        run("refresh", "--from", file, *words, "--map", "gpus=Hourly, USD")


@pytest.mark.slow
def test_workbooks_and_parquet_are_read(run, tmp_path):
    import openpyxl
    import pandas

    rows = pandas.DataFrame([machine(24.0)])
    book = openpyxl.Workbook()
    for line in ([*rows.columns], [*rows.iloc[0].tolist()]):
        book.active.append(line)
    book.save(tmp_path / "quote.xlsx")
    assert run("refresh", "--from", str(tmp_path / "quote.xlsx"))[0] == 0
    import duckdb

    duckdb.from_df(rows).write_parquet(str(tmp_path / "quote.parquet"))
    assert run("refresh", "--from", str(tmp_path / "quote.parquet"))[0] == 0


def test_a_workbook_that_unpacks_without_end_is_refused(run, tmp_path, monkeypatch):
    import zipfile

    monkeypatch.setenv("GPUCOST_LIMIT_WORKBOOK_BYTES", "1000000")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", b" " * 100_000_000)
    code, text = run("refresh", "--from", str(tmp_path / "bomb.xlsx"))
    assert code == 5
    assert "unpacks to" in " ".join(text.split())


def test_a_line_without_end_is_refused_in_bounded_memory(tmp_path):
    """One gigabyte without a line's end: a hole in a file, read by a process that may hold 1.5 GB in all."""
    with (tmp_path / "long.csv").open("wb") as file:
        file.write(b"provider,usd_per_hour\n")
        file.truncate(1_000_000_000 - 100)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000,) * 2);"
        "from gpucost.cli import main; sys.argv = ['gpucost', *sys.argv[1:]]; main()"
    )
    words = ["prices", "refresh", "--from", str(tmp_path / "long.csv"), "--store", str(tmp_path / "store")]
    found = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert found.returncode == 5, found.stderr
    assert "cannot be read" in " ".join(found.stdout.split()) + found.stderr
    assert "Traceback" not in found.stderr


def test_no_key_is_ever_said_or_kept(run, tmp_path, monkeypatch):
    secret = "lambda-SECRET-0123456789"
    monkeypatch.setenv("LAMBDA_API_KEY", secret)
    path = "/cloud.lambda.ai/api/v1/instance-types"
    for answer in (lambda request: send(request, f"your key {secret} is bad".encode(), 401), {"data": {secret: 1}}):
        with Server({path: answer}) as server:
            code, text = run("refresh", "--from", "lambda", "--mirror", server.url)
        assert code == 5
        assert secret not in text
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert secret.encode() not in kept


def test_a_source_without_its_key_says_which(run, monkeypatch):
    monkeypatch.delenv("LAMBDA_API_KEY", raising=False)
    code, text = run("refresh", "--from", "lambda")
    assert code == 5
    assert "LAMBDA_API_KEY" in text


def test_an_unknown_source_gets_the_nearest_names(run):
    with pytest.raises(UnknownNameError, match="Did you mean 'azure'"):
        run("refresh", "--from", "azur")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "{0}", "--from", "{1}"], "both the source file-list, for which one list speaks"),
        (["--from", "{0}", "--region", "us-east-1"], "--region is asked of the sources of AWS alone"),
        (["--from", "{0}", "--mirror", "http://localhost:1"], "--mirror stands in for the host"),
        (["--from", "vast", "--map", "a=b"], "--map names the columns of a file"),
        (["--map", "a=b"], "--map names the columns of a file"),
    ],
)
def test_what_a_refresh_would_leave_aside_is_refused(run, tmp_path, words, said):
    files = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        files.append(table(tmp_path / folder / "list.csv", [machine(24.0)]))
    with pytest.raises(UsageError, match=said):
        run("refresh", *(word.format(*files) for word in words))
    assert not (tmp_path / "store").exists()


def test_a_source_that_is_named_twice_is_asked_once(run, tmp_path):
    file = table(tmp_path / "list.csv", [machine(24.0)])
    assert run("refresh", "--from", file, "--from", file)[0] == 0
    assert [part.source for part in Folder(tmp_path / "store").snapshots[-1].parts] == ["file-list"]


def test_sources_are_asked_side_by_side(run, monkeypatch):
    """Two sources that each wait for the other to be asked, too."""
    together = threading.Barrier(2, timeout=60)

    def meet(answer):
        def respond(request):
            together.wait()
            send(request, answer)

        return respond

    routes = {
        "/apexapps.oracle.com/pls/apex/cetools/api/v1/products/": meet({"items": []}),
        "/console.vast.ai/api/v0/bundles/": meet({"offers": []}),
    }
    with Server(routes) as server:
        run("refresh", "--from", "oci", "--from", "vast", "--mirror", server.url)
    assert not together.broken


def test_throttling_is_waited_for_and_the_source_still_comes(run):
    offer = {"gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 24564, "dph_total": 0.14, "geolocation": "Texas, US"}
    with Server({"/console.vast.ai/api/v0/bundles/": throttled(1, {"offers": [offer]}, wait="0")}) as server:
        code, text = run("refresh", "--from", "vast", "--mirror", server.url)
    assert code == 0, text


@pytest.mark.slow
def test_a_terminal_sees_progress_and_a_pipe_does_not(tmp_path):
    file = table(tmp_path / "a.csv", [machine(24.0)])
    words = [sys.executable, "-m", "gpucost", "prices", "refresh", "--from", file, "--store", str(tmp_path / "store")]
    piped = subprocess.run(words, capture_output=True, text=True)
    assert "of 1 sources" not in piped.stderr
    leader, follower = pty.openpty()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=follower, check=True)
    os.close(follower)
    assert b"of 1 sources" in os.read(leader, 10_000)
    os.close(leader)


def test_the_upkeep_of_a_store(run, tmp_path):
    run("refresh", "--from", table(tmp_path / "a.csv", [machine(24.0)]))
    code, text = run("verify")
    assert (code, "0 damaged" in text) == (0, True)
    assert "file-a" in run("snapshots")[1]
    assert "1 snapshots in" in run("export", str(tmp_path / "public"))[1]
    assert run("prune", "--keep", "1")[0] == 0
    part = next((tmp_path / "store" / "parts").iterdir())
    part.write_bytes(b"x")
    code, text = run("verify")
    assert (code, "1 damaged" in text) == (5, True)


@pytest.mark.slow
def test_a_store_that_one_publishes_is_what_another_refreshes_from(run, tmp_path, monkeypatch):
    """Published with its changes in words, read over the network, checked, and taken once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    public, file = tmp_path / "public", table(tmp_path / "list.csv", [machine(24.0), machine(6.0, "small", gpus=2)])
    assert run("refresh", "--from", file, "--publish", str(public))[0] == 0
    table(tmp_path / "list.csv", [machine(30.0), machine(3.1, "tiny", gpus=1), machine(12.0, "odd", gpu="H9000")])
    assert run("refresh", "--from", file, "--publish", str(public))[0] == 0
    words = (public / "CHANGES.md").read_text()
    assert "| acme | big (8 x h100-sxm5-80gb) | mars-1 | on_demand | 24 | 30 | +25.0% |" in words
    assert "| acme | tiny (1 x h100-sxm5-80gb) | mars-1 | on_demand |  | 3.1 | new |" in words
    assert "| acme | small (2 x h100-sxm5-80gb) | mars-1 | on_demand | 6 |  | gone |" in words
    assert "Kept apart: 1, accelerator not known: odd" in words
    routes = {f"/gpu/{one.relative_to(public)}": one.read_bytes() for one in public.rglob("*") if one.is_file()}

    def taken(url, *words):
        asked = ["prices", "refresh", "--from", url, "--store", str(tmp_path / "mine"), "--format", "json", *words]
        result = CliRunner().invoke(cli, asked)
        text = result.output
        return result.exit_code, [row["state"] for row in json.loads(text[text.index("{") :])["rows"]]

    with Server(routes) as server:
        assert taken(f"{server.url}/gpu") == (0, ["published"])
        assert taken(f"{server.url}/gpu") == (0, ["unchanged"])
        assert taken(f"{server.url}/nowhere") == (5, ["failed"])
    mine, theirs = Folder(tmp_path / "mine"), Folder(tmp_path / "store")
    last = lambda folder: {(part.kind, part.sha256) for _, part, _ in folder.newest()}  # noqa: E731
    assert last(mine) == last(theirs)
    assert {kind for kind, _ in last(mine)} == {"offers", "unknown"}


@pytest.mark.slow
def test_a_version_of_the_facts_can_be_asked_for_and_two_can_be_compared(refresh, run, acme):
    refresh([machine(24.0), machine(6.0, "small", gpus=2)])
    refresh([machine(20.0), machine(6.0, "small", gpus=2)])
    _, text = run("snapshots", "--format", "json")
    versions = [row["id"] for row in json.loads(text)["rows"]]
    shipped, first, second = versions
    dollars = {version: [row["usd_per_hour"] for row in acme("--catalog", version)] for version in (first, second)}
    assert dollars == {first: [24.0, 6.0], second: [20.0, 6.0]}
    for version in (shipped, "shipped"):
        found = CliRunner().invoke(cli, ["prices", "--catalog", version, "--provider", "acme"])
        assert isinstance(found.exception, UnknownNameError), "the package knows no such seller"
    found = CliRunner().invoke(cli, ["prices", "diff", first, second, "--provider", "acme", "--format", "json"])
    changed = json.loads(found.stdout)["rows"]
    assert [(row["instance_type"], row["change"]) for row in changed] == [("big", "cheaper")]
    stamped = CliRunner().invoke(cli, ["prices", "--catalog", first, "--format", "json", "--limit", "1"])
    again = json.loads(stamped.stdout)["catalog_version"]
    assert again.endswith(first)
    assert [row["usd_per_hour"] for row in acme("--catalog", again)] == [24.0, 6.0], "as an answer names it"


def test_a_version_that_is_not_here_is_refused(acme):
    found = CliRunner().invoke(cli, ["prices", "--catalog", "2020-01-01+000000000000"])
    assert isinstance(found.exception, UnknownNameError)
