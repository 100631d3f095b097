"""The store: complete or not at all, whatever is killed; damage shows and the rest serves."""

import multiprocessing
import os
import random
import signal
import time
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import asdict

from gpucost.catalog import open_catalog
from gpucost.catalog.books import StoreWarning
from gpucost.errors import UsageError
from gpucost.store.folder import Folder
from tests.catalog.world import offer, world
from tests.store.parts import publish, publish_bytes, row


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "store")


def prices(root, folder, day="2025-06-30", known=None):
    catalog = open_catalog(day, known, root=root, store=folder.path, checked=False)
    return {found.offer_id: found.usd_per_hour for found in catalog.offers()}


@pytest.fixture
def root(tmp_path):
    return world(tmp_path / "world", [offer("acme/one", 3.0, "2025-05-01"), offer("acme/two", 4.0, "2025-05-01")])


def test_a_refreshed_price_speaks_in_place_of_an_older_shipped_one_and_its_snapshot_is_named(root, folder):
    snapshot = publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    assert prices(root, folder) == {"acme/one": 2.5, "acme/two": 4.0}
    catalog = open_catalog("2025-06-30", root=root, store=folder.path, checked=False)
    assert f"+refreshed-{snapshot.id}" in catalog.version
    assert [found.book for found in catalog.offers()] == ["refreshed", "shipped"]
    assert catalog.source("s-at-2025-06-01")["publisher"] == "s"


def test_the_newest_observation_wins_whoever_made_it(root, folder):
    publish(folder, [row(2.5, "2025-04-01")], "2025-04-01")
    assert prices(root, folder)["acme/one"] == 3.0


def test_a_day_before_the_snapshot_knows_nothing_of_it(root, folder):
    publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    publish(folder, [row(2.0, "2025-06-20")], "2025-06-20")
    assert prices(root, folder, "2025-05-15")["acme/one"] == 3.0
    assert prices(root, folder, "2025-06-10")["acme/one"] == 2.5
    assert prices(root, folder, "2025-06-30", known="2025-06-10")["acme/one"] == 2.5


def test_what_a_source_lists_no_more_is_no_offer(root, folder):
    publish(folder, [row(4.0, "2025-06-01", "acme/two", gone=True)], "2025-06-01")
    assert prices(root, folder) == {"acme/one": 3.0}


def test_a_damaged_part_is_left_out_and_the_one_before_serves(root, folder):
    first = publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    second = publish(folder, [row(2.0, "2025-06-02")], "2025-06-02")
    file = folder.path / "parts" / f"{second.parts[0].sha256}.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert Folder(folder.path).verify()[0].startswith(str(file))
    with pytest.warns(StoreWarning, match="damaged"):
        assert prices(root, folder)["acme/one"] == 2.5
    with pytest.warns(StoreWarning):
        assert (
            f"+refreshed-{first.id}" in open_catalog("2025-06-30", root=root, store=folder.path, checked=False).version
        )


def test_a_damaged_manifest_is_left_out(root, folder):
    publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    last = publish(folder, [row(2.0, "2025-06-02")], "2025-06-02")
    file = folder.path / "snapshots" / f"{last.name}.json"
    file.write_bytes(file.read_bytes().replace(b'"rows": 1', b'"rows": 9'))
    assert "is damaged" in Folder(folder.path).verify()[0]
    with pytest.warns(StoreWarning):
        assert prices(root, folder)["acme/one"] == 2.5


def test_a_part_with_what_no_price_is_is_left_out(root, folder):
    publish(folder, [row(float("inf"), "2025-06-01")], "2025-06-01")
    with pytest.warns(StoreWarning, match="usd_per_hour: inf is not a finite number"):
        assert prices(root, folder)["acme/one"] == 3.0


def test_pruning_keeps_what_still_speaks(folder):
    publish(folder, [row(9.0, "2025-01-01", "acme/rare")], "2025-01-01", source="rare")
    for day in range(1, 6):
        publish(folder, [row(day, f"2025-06-0{day}")], f"2025-06-0{day}")
    assert folder.prune(2, now_s=time.time() + 10_000)[0] == 3
    assert [(part.source, part.observed_on.day) for _, part, _ in folder.newest()] == [("s", 5), ("rare", 1)]
    assert len(list((folder.path / "parts").iterdir())) == 3
    assert folder.verify() == []


def test_a_part_that_may_still_get_its_manifest_is_not_pruned(folder):
    publish(folder, [row(1, "2025-06-01")], "2025-06-01")
    (folder.path / "parts" / f"{'0' * 64}.parquet").write_bytes(b"x")
    folder.prune(1)
    assert (folder.path / "parts" / f"{'0' * 64}.parquet").exists()


def test_a_store_that_is_named_and_holds_nothing_is_said(tmp_path, monkeypatch):
    root = world(tmp_path / "world", [offer("acme/one", 3.0, "2025-05-01", region="", region_scope="global")])
    monkeypatch.setenv("GPUCOST_STORE", str(tmp_path / "typo"))
    monkeypatch.setenv("GPUCOST_DATA", str(root))
    with pytest.warns(StoreWarning, match="typo holds no snapshots"):
        assert {found.book for found in open_catalog("2025-06-30").offers()} == {"shipped"}


def test_an_unwritable_store_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="store"), Folder(tmp_path / "file" / "store").workplace():
        pass


def _publish_without_end(path):
    folder = Folder(Path(path))
    for _ in range(10_000):
        publish_bytes(folder, "s")


def _whole(path):
    folder = Folder(Path(path))
    assert folder.verify() == []
    return folder.names()


@pytest.mark.more
def test_thirty_kills_at_random_moments_lose_nothing_and_leave_nothing_half(tmp_path):
    path, seen, chance = tmp_path / "store", set(), random.Random(7)
    context = multiprocessing.get_context("fork")
    for _ in range(30):
        process = context.Process(target=_publish_without_end, args=(path,))
        process.start()
        while process.is_alive() and not list((path / "tmp").glob(f"{process.pid}-*")):
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        now = set(_whole(path))
        assert seen <= now, "a snapshot is lost"
        seen = now
    assert seen


def _publish_and_count(path, source, ends_at, out):
    made = 0
    with suppress(KeyboardInterrupt):
        while not made or time.time() < ends_at:
            publish_bytes(Folder(Path(path)), source)
            made += 1
    out.put(made)


def _read(path, ends_at, out):
    reads = 0
    while not reads or time.time() < ends_at:
        folder = Folder(Path(path))
        folder.newest()
        if folder.faults:
            out.put(folder.faults)
            return
        reads += 1
    out.put(reads)


@pytest.mark.slow
def test_processes_that_write_and_read_at_once_lose_no_snapshot(tmp_path):
    context, ends_at = multiprocessing.get_context("fork"), time.time() + 2
    written, read = context.Queue(), context.Queue()
    path = tmp_path / "store"
    jobs = [context.Process(target=_publish_and_count, args=(path, f"s{i}", ends_at, written)) for i in range(4)]
    jobs += [context.Process(target=_read, args=(path, ends_at, read)) for _ in range(4)]
    for job in jobs:
        job.start()
    made, reads = [written.get(timeout=60) for _ in range(4)], [read.get(timeout=60) for _ in range(4)]
    for job in jobs:
        job.join()
    assert all(isinstance(count, int) and count > 0 for count in reads), reads
    assert len(_whole(path)) == sum(made)
    assert {part.source for _, part, _ in Folder(path).newest(date(2025, 6, 1))} == {"s0", "s1", "s2", "s3"}


@pytest.mark.parametrize("kind", ["folder", "fifo", "device", "broken link"])
def test_what_is_no_file_in_place_of_a_manifest_is_named_and_the_rest_serves(kind, root, folder):
    publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    place = folder.path / "snapshots" / f"20250602T000000000000Z-{'0' * 16}.json"
    if kind == "folder":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero" if kind == "device" else "nowhere")
    with pytest.warns(StoreWarning, match=place.name):
        assert prices(root, folder) == {"acme/one": 2.5, "acme/two": 4.0}
    assert len(Folder(folder.path).verify()) == 1


def test_a_pipe_in_place_of_a_part_is_not_waited_for(folder):
    snapshot = publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    part = folder.path / "parts" / f"{snapshot.parts[0].sha256}.parquet"
    part.unlink()
    os.mkfifo(part)
    assert len(Folder(folder.path).verify()) == 1
    empty = snapshot.parts[0].__class__(**{**asdict(snapshot.parts[0]), "size_bytes": 0})
    assert Folder(folder.path).part_file(empty) is None


def test_a_manifest_that_goes_while_it_is_read_was_pruned(folder, monkeypatch):
    """Between listing and reading, another process may prune: that is no fault."""
    publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    publish(folder, [row(2.0, "2025-06-02")], "2025-06-02")
    from gpucost.store import folder as module

    first = folder.names()[0]

    def pruning(path, read=module.read_bytes):
        if path.stem == first:
            path.unlink()
        return read(path)

    monkeypatch.setattr(module, "read_bytes", pruning)
    fresh = Folder(folder.path)
    assert [item.name for item in fresh.snapshots] == [fresh.names()[-1]]
    assert fresh.faults == []
