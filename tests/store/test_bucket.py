"""A store in a bucket: read with keys of the environment where httpfs is there, a sentence where it is not."""

import subprocess
import sys

import pytest

from gpucost.errors import UsageError
from gpucost.store import bucket
from gpucost.store.client import FetchError
from gpucost.store.folder import Folder
from gpucost.store.remote import fetched, is_remote
from tests.importers.server import Server, send
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
def served(tmp_path, monkeypatch):
    """Serve an exported store as the bucket `prices` of a server on this machine."""
    folder = Folder(tmp_path / "store")
    publish(folder, [row(2.5, "2025-06-01")], "2025-06-01")
    folder.export(tmp_path / "public")
    files = {f.relative_to(tmp_path / "public").as_posix(): f.read_bytes() for f in (tmp_path / "public").rglob("*.*")}

    def answer(request):
        body = files.get(request.path.partition("/prices/gpu/")[2].partition("?")[0])
        if request.command == "HEAD" and body is not None:
            request.send_response(200)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
        else:
            send(request, body, headers={"Accept-Ranges": "bytes"})

    with Server() as server:
        server.routes = _Always(answer)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-said")
        yield server


class _Always(dict):
    def __init__(self, answer):
        self._answer = answer

    def get(self, *_):
        return self._answer


def test_without_the_extension_a_bucket_is_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("duckdb.connect", lambda *_: _Bare())
    with pytest.raises(UsageError, match=r"needs DuckDB's extension httpfs.*A folder or an https"):
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


def test_nothing_of_a_bucket_is_loaded_where_none_is_named():
    code = "import gpucost.store.remote, sys; assert not {'gpucost.store.bucket', 'duckdb'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
