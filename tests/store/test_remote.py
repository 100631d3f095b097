"""A published store: any web server hands it out, and nothing that is not what its name says is taken from it."""

from functools import partial
from hashlib import sha256

import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.books import StoreWarning
from gpucost.errors import GpuCostError, UsageError
from gpucost.store.client import Client, FetchError
from gpucost.store.folder import Folder
from gpucost.store.remote import fetched
from tests.catalog.world import offer, world
from tests.refresh.server import Server
from tests.store.parts import publish, row

quick = partial(Client, pause=lambda _: None)


@pytest.fixture
def published(tmp_path):
    """Return the routes of an exported store with two snapshots, the first of them the older."""
    folder = Folder(tmp_path / "store")
    publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    publish(folder, [row(2.0, "2025-06-02")], "2025-06-02")
    assert folder.export(tmp_path / "public") == 2
    public = tmp_path / "public"
    return {
        f"/p/{file.relative_to(public).as_posix()}": file.read_bytes() for file in public.rglob("*") if file.is_file()
    }


def test_a_catalog_reads_a_published_store_by_its_address(tmp_path, published):
    root = world(tmp_path / "world", [offer("acme/one", 3.0, "2025-05-01")])
    with Server(published) as server:
        found = open_catalog("2025-06-30", root=root, store=f"{server.url}/p", checked=False).offers()
        assert [(item.usd_per_hour, item.book) for item in found] == [(2.0, "refreshed")]
        asked = len(server.asked)
        open_catalog("2025-06-30", root=root, store=f"{server.url}/p", checked=False).offers()
        assert len(server.asked) == asked + 2, "seal and index alone: what is known is not fetched again"


def test_a_tampered_part_is_refused_and_the_snapshot_before_serves(tmp_path, published):
    name = max(name for name in published if "/snapshots/" in name)
    newest = Folder(tmp_path / "store").snapshots[-1]
    assert newest.name in name
    published[f"/p/parts/{newest.parts[0].sha256}.parquet"] = b"x" * newest.parts[0].size_bytes
    with Server(published) as server:
        folder = fetched(f"{server.url}/p", tmp_path / "cache", quick())
    assert any("SHA-256" in fault for fault in folder.faults)
    assert [snapshot.name for snapshot, _, _ in folder.newest()] == [Folder(tmp_path / "store").names()[0]]


def test_a_manifest_that_promises_another_content_is_refused(tmp_path, published):
    name = max(name for name in published if "/snapshots/" in name)
    published[name] = published[name].replace(b'"rows": 1', b'"rows": 2')
    with Server(published) as server:
        folder = fetched(f"{server.url}/p", tmp_path / "cache", quick())
    assert any("damaged" in fault for fault in folder.faults)
    assert len(folder.names()) == 1


@pytest.mark.parametrize("name", ["../../../../etc/x", "..\\x", "", "20250601T000000000000Z-" + "g" * 16])
def test_no_name_of_a_snapshot_leaves_the_cache(tmp_path, name):
    index = {"format": 1, "snapshots": [name]}
    with Server({"/p/index.json": index, f"/p/snapshots/{name}.json": b"{}"}) as server:
        folder = fetched(f"{server.url}/p", tmp_path / "cache", quick())
    assert folder.faults
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_manifest_cannot_name_a_part_outside(tmp_path):
    body = b'{"format": 1, "made_at": "2025-06-01T00:00:00+00:00", "parts": [{"source": "s", "kind": "offers", '
    body += b'"observed_on": "2025-06-01", "rows": 1, "size_bytes": 1, "sha256": "../../evil", "origin": {}}]}'
    name = f"20250601T000000000000Z-{sha256(body).hexdigest()[:16]}"
    with Server({"/p/index.json": {"format": 1, "snapshots": [name]}, f"/p/snapshots/{name}.json": body}) as server:
        folder = fetched(f"{server.url}/p", tmp_path / "cache", quick())
    assert any("manifest" in fault for fault in folder.faults)


def test_without_a_connection_the_copy_serves_and_says_so(tmp_path, published):
    root = world(tmp_path / "world", [offer("acme/one", 3.0, "2025-05-01")])
    with Server(published) as server:
        open_catalog("2025-06-30", root=root, store=f"{server.url}/p", checked=False).offers()
        server.routes.clear()
        with pytest.warns(StoreWarning, match="copy"):
            found = open_catalog("2025-06-30", root=root, store=f"{server.url}/p", checked=False).offers()
    assert found[0].usd_per_hour == 2.0


def test_what_is_no_store_is_a_sentence(tmp_path):
    with Server({"/p/index.json": {"snapshots": "x"}}) as server, pytest.raises(GpuCostError, match="index"):
        fetched(f"{server.url}/p", tmp_path / "cache", quick())
    with pytest.raises(FetchError, match="only https"):
        fetched("http://example.org/p", tmp_path / "cache", quick())


def test_a_published_store_is_read_only():
    from gpucost.cli.prices import folder_of

    with pytest.raises(UsageError, match="read-only"):
        folder_of("https://example.org/p", written=True)


def test_a_seal_names_every_file_and_an_index_that_it_does_not_name_is_refused(tmp_path, published):
    import json

    files = json.loads(published["/p/seal.json"])["files"]
    assert files == {
        name.removeprefix("/p/"): sha256(body).hexdigest() for name, body in published.items() if "seal" not in name
    }
    published["/p/index.json"] = published["/p/index.json"].replace(b"snapshots", b"snapshots ").replace(b" ", b"")
    with Server(published) as server, pytest.raises(FetchError, match=r"does not match its seal\.json"):
        fetched(f"{server.url}/p", tmp_path / "cache", quick())


def test_a_seal_that_was_changed_is_refused(tmp_path, published):
    published["/p/seal.json"] = published["/p/seal.json"].replace(b'"parts/', b'"parts/0', 1)
    with Server(published) as server, pytest.raises(GpuCostError, match=r"seal\.json.*SHA-256"):
        fetched(f"{server.url}/p", tmp_path / "cache", quick())


@pytest.mark.parametrize(("theirs", "ours", "taken"), [("k", "k", True), ("other", "k", False), ("", "k", False)])
def test_with_a_key_only_a_store_that_is_signed_with_it_is_read(tmp_path, published, monkeypatch, theirs, ours, taken):
    monkeypatch.setenv("GPUCOST_STORE_KEY", theirs)
    Folder(tmp_path / "store").export(tmp_path / "public")
    published["/p/seal.json"] = (tmp_path / "public" / "seal.json").read_bytes()
    assert b"hmac" in published["/p/seal.json"] or not theirs
    monkeypatch.setenv("GPUCOST_STORE_KEY", ours)
    with Server(published) as server:
        if taken:
            assert len(fetched(f"{server.url}/p", tmp_path / "cache", quick()).names()) == 2
        else:
            with pytest.raises(GpuCostError, match="not signed with the key in GPUCOST_STORE_KEY"):
                fetched(f"{server.url}/p", tmp_path / "cache", quick())
            del server.routes["/p/seal.json"]
            with pytest.raises(GpuCostError, match="signed"):
                fetched(f"{server.url}/p", tmp_path / "cache", quick())


def test_a_part_is_streamed_to_its_file_and_hashed_as_it_comes(tmp_path, published):
    """A part of 60 MB takes some pieces of memory, and no more once it is not what its name says."""
    import json
    import tracemalloc

    from tests.refresh.server import send

    body = b"x" * 60_000_000
    digest = sha256(body).hexdigest()
    row_of_part = {"source": "s", "kind": "offers", "observed_on": "2025-06-03", "rows": 1, "size_bytes": len(body)}
    row_of_part |= {"sha256": digest, "origin": {}, "changes": {}}
    manifest = json.dumps({"format": 1, "made_at": "2025-06-03T00:00:00+00:00", "parts": [row_of_part]}).encode()
    name = f"20250603T000000000000Z-{sha256(manifest).hexdigest()[:16]}"
    for sent, taken in ((body, True), (b"y" + body[1:], False)):
        routes = {
            "/p/index.json": {"format": 1, "snapshots": [name]},
            f"/p/snapshots/{name}.json": manifest,
            f"/p/parts/{digest}.parquet": lambda request, sent=sent: send(request, sent, packed=True),
        }
        with Server(routes) as server:
            tracemalloc.start()
            folder = fetched(f"{server.url}/p", tmp_path / f"cache-{taken}", quick())
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert bool(folder.names()) == taken
        assert any("SHA-256" in fault for fault in folder.faults) != taken
        assert peak < 30_000_000
