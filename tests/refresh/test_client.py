"""The client against a server of this machine: what passes is tried again, what is hostile is bounded."""

import gzip
import sys
import threading
import time

import pytest

from gpucost.errors import UsageError
from gpucost.limits import Deadline
from gpucost.store.client import Client, FetchError, library, place_of
from tests.refresh.server import Server, broken, moved, send, slow, throttled, zipped

NO_WAIT = {"pause": lambda _: None}


def test_json_is_read_plain_and_packed():
    with Server({"/a": {"x": 1}, "/b": zipped({"x": 2})}) as server, Client() as client:
        assert client.json(f"{server.url}/a") == {"x": 1}
        assert client.json(f"{server.url}/b") == {"x": 2}


def test_a_throttled_request_waits_as_long_as_the_server_asks():
    waits = []
    with Server({"/a": throttled(2, [1], wait="7")}) as server, Client(pause=waits.append) as client:
        assert client.json(f"{server.url}/a") == [1]
    assert waits == [7, 7]


def test_without_a_wish_of_the_server_each_wait_is_longer():
    waits = []
    with (
        Server({"/a": lambda request: send(request, b"", 503)}) as server,
        Client(pause=waits.append) as client,
        pytest.raises(FetchError, match="answers 503"),
    ):
        client.body(f"{server.url}/a")
    assert len(waits) == 4
    assert 0.25 <= waits[0] <= 0.75
    assert 2 <= waits[3] <= 6


def test_a_server_that_asks_for_hours_is_not_waited_for():
    with Server({"/a": throttled(9, [1], wait="7200")}) as server, Client(**NO_WAIT) as client:
        with pytest.raises(FetchError, match="429"):
            client.json(f"{server.url}/a")
        assert len(server.asked) == 1


def test_a_body_that_breaks_off_is_fetched_again_and_never_half(tmp_path):
    with Server({"/a": broken(2, b"[1, 2, 3]")}) as server, Client(**NO_WAIT) as client:
        assert client.file(f"{server.url}/a", tmp_path / "a.json").read_bytes() == b"[1, 2, 3]"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_packed_body_that_breaks_off_is_no_answer():
    half = gzip.compress(b"x" * 100_000)[:60]
    route = lambda request: send(request, half, headers={"Content-Encoding": "gzip"})  # noqa: E731
    with (
        Server({"/a": route}) as server,
        Client(**NO_WAIT) as client,
        pytest.raises(FetchError, match="its end"),
    ):
        client.body(f"{server.url}/a")


def test_a_packed_bomb_is_stopped_at_the_bound():
    bomb = gzip.compress(b"\0" * 200_000_000)
    assert len(bomb) < 300_000
    route = lambda request: send(request, bomb, headers={"Content-Encoding": "gzip"})  # noqa: E731
    with Server({"/a": route}) as server, Client(most_bytes=1_000_000, **NO_WAIT) as client:
        with pytest.raises(FetchError, match="larger than 1 MB"):
            client.body(f"{server.url}/a")
        assert client.fetched_bytes < 1_200_000


def test_a_silent_server_is_given_up():
    with Server({"/a": slow(60, [1])}) as server, Client(read_timeout_s=0.1, **NO_WAIT) as client:
        began = time.monotonic()
        with pytest.raises(FetchError, match="silent"):
            client.json(f"{server.url}/a")
        assert time.monotonic() - began < 30


def test_the_time_of_a_source_is_bounded():
    def drip(request):
        request.send_response(200)
        request.end_headers()
        for _ in range(100):
            request.wfile.write(b"x" * 70_000)
            time.sleep(0.05)

    with (
        Server({"/a": drip}) as server,
        Client(deadline=Deadline(0.3), **NO_WAIT) as client,
        pytest.raises(FetchError, match="time limit"),
    ):
        client.body(f"{server.url}/a")


def test_a_redirect_is_followed_within_its_scheme_and_never_in_circles():
    routes = {"/a": moved("/b"), "/b": [1], "/c": moved("ftp://127.0.0.1/x"), "/d": moved("/d")}
    with Server(routes) as server, Client(**NO_WAIT) as client:
        assert client.json(f"{server.url}/a") == [1]
        with pytest.raises(FetchError, match="another scheme"):
            client.body(f"{server.url}/c")
        with pytest.raises(FetchError, match="redirects"):
            client.body(f"{server.url}/d")


def test_a_key_is_not_handed_to_another_host():
    with (
        Server({"/b": [1]}) as other,
        Server({"/a": moved(other.url.replace("127.0.0.1", "localhost") + "/b")}) as server,
    ):
        with Client(**NO_WAIT) as client:
            client.json(f"{server.url}/a", headers={"authorization": "Bearer secret", "accept": "x"})
        assert server.asked[0].headers["authorization"] == "Bearer secret"
        assert other.asked[0].headers["authorization"] is None
        assert other.asked[0].headers["accept"] == "x"


def test_what_an_error_says_holds_no_key():
    with Server() as server, Client(**NO_WAIT) as client, pytest.raises(FetchError) as error:
        client.body(f"{server.url}/a?key=secret")
    assert "secret" not in str(error.value)
    assert place_of("https://u:secret@h:8/p?q=secret#secret") == "https://h:8/p"


def test_plain_http_is_refused_beyond_this_machine():
    with Client(**NO_WAIT) as client, pytest.raises(FetchError, match="only https"):
        client.body("http://example.org/a")


@pytest.mark.parametrize("body", [b"<html>", b"[1, NaN]", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_json_is_a_sentence(body):
    with Server({"/a": body}) as server, Client(**NO_WAIT) as client, pytest.raises(FetchError, match="not JSON"):
        client.json(f"{server.url}/a")


def test_a_mirror_is_asked_in_place_of_every_host():
    with Server({"/prices.azure.com/api": [1]}) as server, Client(mirror=server.url, **NO_WAIT) as client:
        assert client.json("https://prices.azure.com/api?a=b") == [1]
        assert server.asked[0].path == "/prices.azure.com/api?a=b"


def test_the_missing_extra_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(UsageError, match=r"gpucost\[refresh\]"):
        library()


def dripping(head=b"", times=1200, pause_s=0.05):
    """Send a sign now and then: each renews the time in which the next must come."""

    def respond(request):
        if not head:
            request.send_response(200)
            request.end_headers()
        request.wfile.write(head)
        for _ in range(times):
            request.wfile.write(b"x")
            request.wfile.flush()
            time.sleep(pause_s)

    return respond


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nX-Long: "])
def test_a_server_that_drips_gets_no_more_time_than_a_silent_one(head):
    with Server({"/a": dripping(head)}) as server, Client(deadline=Deadline(0.4)) as client:
        began = time.monotonic()
        with pytest.raises(FetchError, match="time limit"):
            client.body(f"{server.url}/a")
        assert time.monotonic() - began < 20  # a busy machine; it would be a minute


def test_a_silent_server_is_cut_off_at_the_deadline_and_asked_no_more():
    with Server({"/a": slow(30, [1])}) as server, Client(deadline=Deadline(0.4)) as client:
        began = time.monotonic()
        for _ in range(14):
            with pytest.raises(FetchError, match="time limit"):
                client.json(f"{server.url}/a")
        assert time.monotonic() - began < 20  # a busy machine; it would be a minute
        assert len(server.asked) == 1


def test_a_server_that_asks_to_wait_beyond_the_deadline_is_not_waited_for():
    with Server({"/a": throttled(9, [1], wait="30")}) as server, Client(deadline=Deadline(5)) as client:
        began = time.monotonic()
        with pytest.raises(FetchError, match="429"):
            client.json(f"{server.url}/a")
        assert time.monotonic() - began < 20  # a busy machine; it would be half a minute and more


def test_a_redirect_is_judged_like_the_address_that_was_asked():
    with (
        Server({"/a": moved("http://192.0.2.1/prices")}) as server,
        Client(**NO_WAIT) as client,
        pytest.raises(FetchError, match="only https"),
    ):
        client.body(f"{server.url}/a")
    routes = {"/prices.azure.com/api": moved("http://192.0.2.1/prices"), "/192.0.2.1/prices": [7]}
    with Server(routes) as server, Client(mirror=server.url, **NO_WAIT) as client:
        assert client.json("https://prices.azure.com/api") == [7], "a mirror stands in for every host"
        with pytest.raises(FetchError, match="404"):
            client.json(f"{server.url}0.example.org/x")  # begins like the mirror, and is another host


def test_a_file_is_what_its_hash_says_or_is_not_there(tmp_path):
    with (
        Server({"/a": b"abc"}) as server,
        Client(**NO_WAIT) as client,
        pytest.raises(FetchError, match="SHA-256"),
    ):
        client.file(f"{server.url}/a", tmp_path / "a", digest="0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_a_deadline_ends_what_is_told_to_it_and_keeps_what_was_done():
    ended = threading.Event()
    deadline = Deadline(0.3)

    def waits():
        with deadline.ending(ended.set):
            ended.wait(30)
        return "too late"

    began = time.monotonic()
    assert deadline.all_of([lambda: "done", waits, lambda: time.sleep(30)], side_by_side=3)[0] == "done"
    assert ended.is_set()
    assert time.monotonic() - began < 20  # a busy machine; it would be a minute
    with pytest.raises(ZeroDivisionError):
        Deadline(5).all_of([lambda: 1 / 0])
