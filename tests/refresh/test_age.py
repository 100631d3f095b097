"""A price is never made younger than its source: by every importer, whatever day a refresh is made."""

import os
from datetime import date, datetime
from pathlib import Path

import pytest

from gpucost.catalog import open_catalog
from gpucost.refresh import karpenter, litellm, skypilot
from gpucost.refresh.complete import UNDATED, complete
from gpucost.refresh.integrity import OLDER
from gpucost.refresh.known import known_of
from gpucost.refresh.registry import SOURCES, source_of
from gpucost.refresh.run import RefreshOptions, refresh
from gpucost.refresh.source import COMMITS, Desk
from gpucost.store.client import Client
from gpucost.store.folder import Folder
from tests.refresh.server import Server

SAMPLES = Path(__file__).parent / "samples"
RAW = "/raw.githubusercontent.com/"
CHANGED_ON = date(2026, 8, 3)  # the last change of Google's table in its repository
COPIES = [name for name, source in SOURCES.items() if source.copied]


def commits(address, day=CHANGED_ON):
    """Return the answer of GitHub about the last change of a file."""
    _, owner, repository, *_ = address.removeprefix("https:/").removeprefix("/raw.githubusercontent.com").split("/")
    url = COMMITS.format(owner=owner, repository=repository).removeprefix("https:/")
    return {url: [{"commit": {"committer": {"date": f"{day}T09:00:00Z"}}}]}


def files_of_copies():
    """Return the files of the copies, as they were published, by the path that a mirror has them under."""
    skypilots = {f"skypilot_v8_{cloud}.csv": cloud for cloud in ("aws", "verda", "lambda", "jarvislabs")}
    google = RAW + karpenter.FILES["gcp"][0]
    return {
        google: (SAMPLES / "karpenter_gcp_prices.json").read_bytes(),
        RAW + karpenter.FILES["aws"][0]: (SAMPLES / "karpenter_aws_prices.go.txt").read_bytes(),
        RAW + karpenter.FILES["azure"][0]: (SAMPLES / "karpenter_azure_prices.go.txt").read_bytes(),
        litellm.ADDRESS.removeprefix("https:/"): (SAMPLES / "litellm_prices.json").read_bytes(),
        RAW + "pydantic/genai-prices/main/prices/data.json": (SAMPLES / "genai_prices_data.json").read_bytes(),
        **{
            skypilot.ADDRESS.format(cloud=cloud).removeprefix("https:/"): (SAMPLES / name).read_bytes()
            for name, cloud in skypilots.items()
        },
    }


def every_commit(day=CHANGED_ON):
    addresses = [karpenter.ADDRESS + path for path, _ in karpenter.FILES.values()]
    addresses += [litellm.ADDRESS, skypilot.ADDRESS, karpenter.ADDRESS + "pydantic/genai-prices/main/prices/data.json"]
    return {path: answer for address in addresses for path, answer in commits(address, day).items()}


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-28")


@pytest.fixture(scope="module")
def known(catalog):
    return known_of(catalog)


def observed(tmp_path, known, name, routes, today=date(2026, 11, 28)):
    """Return the days on which one source's rows were seen, and why rows are none."""
    source = SOURCES[name]
    with Server(routes) as server, Client(mirror=server.url, pause=lambda _: None) as client:
        desk = Desk(client, tmp_path / f"{name}-{today}", today)
        desk.copied = source.copied
        source.fetch(desk)
        if source.kind == "tokens":
            rows = desk.connection.execute("SELECT observed_on, NULL FROM tokens").fetchall()
        else:
            complete(desk, known)
            rows = desk.connection.execute("SELECT observed_on, fault FROM candidate").fetchall()
    return [day for day, fault in rows if not fault], {fault for _, fault in rows}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_as_old_as_it_says_or_as_its_last_change(tmp_path, known, name):
    days, _ = observed(tmp_path, known, name, files_of_copies() | every_commit())
    assert days
    assert None not in days
    assert max(days) <= max(CHANGED_ON, date(2026, 7, 25))


@pytest.mark.parametrize("name", COPIES)
def test_a_later_refresh_makes_no_price_of_a_copy_younger(tmp_path, known, name):
    routes = files_of_copies() | every_commit()
    first, _ = observed(tmp_path, known, name, routes)
    later, _ = observed(tmp_path, known, name, routes, date(2027, 12, 31))
    assert sorted(first) == sorted(later)


def test_a_copy_without_any_day_gives_no_price(tmp_path, known):
    days, faults = observed(tmp_path, known, "skypilot", files_of_copies())
    assert days == []
    assert UNDATED in faults


def test_googles_undated_table_overwrites_no_newer_observation(tmp_path, catalog):
    folder = Folder(tmp_path / "store")
    before = {offer.offer_id: offer for offer in catalog.offers()}
    with Server(files_of_copies() | every_commit()) as server:
        outcomes, snapshot = refresh(
            catalog, folder, ["karpenter"], RefreshOptions(mirror=server.url, pause=lambda _: None)
        )
    assert snapshot is not None
    assert outcomes[0].verdict.left_out[OLDER] > 0
    after = {offer.offer_id: offer for offer in open_catalog("2026-11-28", store=folder.path).offers()}
    assert all(after[name].observed_on >= offer.observed_on for name, offer in before.items() if name in after)
    changed = [name for name in before if name in after and after[name].usd_per_hour != before[name].usd_per_hour]
    assert {after[name].observed_on for name in changed} == {CHANGED_ON}
    assert all(before[name].observed_on <= CHANGED_ON for name in changed)


def test_a_file_of_ones_own_is_as_old_as_its_last_change(tmp_path):
    file = tmp_path / "quotes.csv"
    file.write_text("provider,instance_type,gpu,gpus,option,usd_per_hour\nacme,big,H100 SXM,8,on_demand,24\n")
    saved_at = datetime(2026, 5, 4, 12).timestamp()
    os.utime(file, (saved_at, saved_at))
    desk = Desk(None, tmp_path / "desk", date(2026, 11, 28))
    source_of(str(file)).fetch(desk)
    assert desk.connection.execute("SELECT observed_on FROM listing").fetchall() == [(date(2026, 5, 4),)]
