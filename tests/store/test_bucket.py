"""A store in a bucket: read with keys of the environment where httpfs is there, a sentence where it is not."""

import contextlib
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gpucost.cli import cli
from gpucost.errors import UsageError
from gpucost.store import bucket
from gpucost.store.client import FetchError
from gpucost.store.folder import Folder
from gpucost.store.remote import fetched, is_remote
from tests.refresh.server import Server, send
from tests.store.parts import publish, row


def httpfs():
    """Tell whether the extension loads here."""
    import duckdb

    try:
        bucket._load(duckdb.connect())
    except UsageError:
        return False
    return True


@pytest.fixture
def store(tmp_path):
    """Return a store with one price."""
    folder = Folder(tmp_path / "store")
    publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    return folder


@pytest.fixture
def bucket_server(monkeypatch):
    """Serve the bucket `prices` on this machine: its objects are in `objects`, uploads in parts are put together."""
    objects, parts = {}, {}

    def answer(request):
        path, _, query = request.path.partition("?")
        name = path.partition("/prices/gpu/")[2]
        asked = dict(item.partition("=")[::2] for item in query.split("&"))
        if request.command == "POST" and "uploads" in asked:
            xml = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
            send(request, xml, headers={"Content-Type": "application/xml"})
        elif request.command == "POST":
            objects[name] = b"".join(body for _, body in sorted(parts.pop(name).items()))
            send(request, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
        elif request.command == "PUT":
            if "partNumber" in asked:
                parts.setdefault(name, {})[int(asked["partNumber"])] = request.body
            else:
                objects[name] = request.body
            send(request, b"", headers={"ETag": '"1"'})
        elif request.command == "HEAD" and name in objects:
            request.send_response(200)
            request.send_header("Content-Length", str(len(objects[name])))
            request.end_headers()
        else:
            send(request, objects.get(name), headers={"Accept-Ranges": "bytes"})

    with Server() as server:
        server.routes = _Always(answer)
        server.objects = objects
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-said")
        yield server


@pytest.fixture
def served(tmp_path, store, bucket_server):
    """Serve an exported store as the bucket `prices`."""
    public = tmp_path / "public"
    store.export(public)
    bucket_server.objects.update({f.relative_to(public).as_posix(): f.read_bytes() for f in public.rglob("*.*")})
    return bucket_server


class _Always(dict):
    def __init__(self, answer):
        self._answer = answer

    def get(self, *_):
        return self._answer


def test_without_the_extension_a_bucket_is_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("duckdb.connect", lambda *_: _Bare())
    with pytest.raises(UsageError, match=r"httpfs.*https"):
        fetched("s3://prices/gpu", tmp_path / "cache")
    assert is_remote("s3://prices/gpu")


class _Bare:
    def execute(self, *_):
        import duckdb

        raise duckdb.IOException("no such extension")


def test_keys_are_quoted_and_an_endpoint_is_asked_by_path():
    said = bucket._credentials(
        {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "it's", "AWS_ENDPOINT_URL": "http://h:1"}
    )
    assert "SECRET 'it''s'" in said
    assert "ENDPOINT 'h:1', URL_STYLE 'path', USE_SSL 'false'" in said
    assert bucket._credentials({}) == "CREATE OR REPLACE SECRET store (TYPE s3)"


def test_a_store_is_read_from_a_bucket(served, tmp_path):
    if not httpfs():
        pytest.skip("DuckDB's extension httpfs is not installed")
    folder = fetched("s3://prices/gpu", tmp_path / "cache")
    assert [part.rows for _, part, _ in folder.newest()] == [1]
    assert not folder.faults


def test_an_object_that_is_missing_or_too_large_is_a_sentence_without_keys(served):
    if not httpfs():
        pytest.skip("DuckDB's extension httpfs is not installed")
    with bucket.Bucket() as found:
        for url, most in (("s3://prices/gpu/none.json", 1000), ("s3://prices/gpu/index.json", 3)):
            with pytest.raises(FetchError) as failure:
                found.body(url, most)
            assert "not-to-be-said" not in str(failure.value)
            assert url in str(failure.value)


def test_a_store_is_published_into_a_bucket_and_read_from_there(store, bucket_server, tmp_path):
    if not httpfs():
        pytest.skip("DuckDB's extension httpfs is not installed")
    asked = ["prices", "export", "s3://prices/gpu", "--store", str(store.path)]
    done = CliRunner().invoke(cli, asked)
    assert (done.exit_code, "1 snapshots in s3://prices/gpu" in done.output) == (0, True), done.output
    store.export(tmp_path / "public")
    assert bucket_server.objects["index.json"] == (tmp_path / "public/index.json").read_bytes()
    assert [part.rows for _, part, _ in fetched("s3://prices/gpu", tmp_path / "cache").newest()] == [1]


def test_a_bucket_that_refuses_is_a_sentence_without_keys(store, bucket_server):
    if not httpfs():
        pytest.skip("DuckDB's extension httpfs is not installed")
    bucket_server.routes = _Always(lambda request: send(request, b"not-to-be-said", 403))
    done = CliRunner().invoke(cli, ["prices", "export", "s3://prices/gpu", "--store", str(store.path)])
    assert "bucket" in str(done.exception)
    assert "not-to-be-said" not in f"{done.exception}{done.output}"


def test_what_is_published_comes_in_the_order_in_which_it_can_be_read(store, monkeypatch):
    """Parts, then manifests, the index last; what is there already is not sent again."""
    there = {}

    class Objects(contextlib.nullcontext):
        size = staticmethod(lambda url: len(there[url]) if url in there else None)
        put = staticmethod(lambda url, body: (sent.append(url.split("/")[4]), there.update({url: body})))

        def __enter__(self):
            return self

    monkeypatch.setattr(bucket, "Bucket", Objects)
    publish(store, [row(2.6, "2025-06-02")], "2025-06-02")
    for expected in (
        ["parts", "snapshots", "parts", "snapshots", "seal.json", "index.json"],
        ["seal.json", "index.json"],
    ):
        sent = []
        assert bucket.published(store, "s3://prices/gpu/") == 2
        assert sent == expected


def test_refreshing_a_bucket_says_how_to_publish_into_one():
    done = CliRunner().invoke(cli, ["prices", "refresh", "--from", "skypilot", "--store", "s3://prices/gpu"])
    assert isinstance(done.exception, UsageError)
    assert "is read-only" in str(done.exception)
    assert "gpucost prices export" in str(done.exception)


def test_nothing_of_a_bucket_is_loaded_where_none_is_named():
    code = "import gpucost.store.remote, sys; assert not {'gpucost.store.bucket', 'duckdb'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
