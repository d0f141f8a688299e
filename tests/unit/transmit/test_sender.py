"""The sender over real local sockets: what it keeps of a response, and what it never reads."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

import pycurl
import pytest

from dataplane.transmit.http.sender import (
    KEPT_BYTES,
    MAX_ANSWER_BYTES,
    REQUEST_INVALID,
    HttpPolicy,
    HttpRequest,
    HttpResponse,
    HttpSender,
)

LOOPBACK = (ip_network("127.0.0.0/8"),)


@contextmanager
def answering(*parts: bytes) -> Iterator[str]:
    """Serve one connection: send these parts, whatever the request is, and close."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            try:
                for part in parts:
                    connection.sendall(part)
            except OSError:
                return  # the client closed the connection

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(10)


def posted(*parts: bytes, keep: int = KEPT_BYTES, timeout_ms: int = 5_000) -> HttpResponse:
    sender = HttpSender(HttpPolicy(LOOPBACK))
    with answering(*parts) as url:
        sender.begin(HttpRequest("token", url, ["Expect:"], b"{}", timeout_ms, keep))
        while sender.active:
            for answer in sender.poll(0.1):
                sender.close()
                return answer
    raise AssertionError("no answer")


class FailingDict(dict[Any, Any]):
    """Dict in which nothing can be stored."""

    def __setitem__(self, _key: Any, _value: Any) -> None:
        raise RuntimeError("planted")


def test_request_whose_start_fails_at_any_point_is_refused_and_not_sent(monkeypatch: pytest.MonkeyPatch):
    sender = HttpSender(HttpPolicy(LOOPBACK))
    monkeypatch.setattr(sender, "_busy", FailingDict())
    sender.begin(HttpRequest("token", "http://127.0.0.1:1/", [], b"{}", 5_000))
    (answer,) = sender.poll(0)
    assert answer.verdict == REQUEST_INVALID
    assert sender._multi.perform()[1] == 0, "no transfer is in progress"
    sender.close()


def test_beginning_of_the_body_is_kept():
    answer = posted(b"HTTP/1.1 400 Bad\r\ncontent-length: 9\r\n\r\n", b"no ", b"such x")
    assert (answer.token, answer.status, answer.body) == ("token", 400, b"no such x")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"Retry-After: 120\r\n", "120"),
        (b"retry-after:Sat, 21 Nov 2026 12:00:00 GMT\r\n", "Sat, 21 Nov 2026 12:00:00 GMT"),
        (b"", ""),
    ],
)
def test_retry_after_is_returned_unchanged(line: bytes, value: str):
    assert posted(b"HTTP/1.1 429 Slow\r\n" + line + b"content-length: 0\r\n\r\n").retry_after == value


def test_endless_body_is_cut_off_and_the_status_counts():
    endless = [b"x" * 65_536] * 200
    answer = posted(b"HTTP/1.1 200 OK\r\n\r\n", *endless)
    assert (answer.status, len(answer.body)) == (200, KEPT_BYTES)
    assert answer.curl_code


def test_timeout_below_a_millisecond_is_not_treated_as_none():
    """A spec may set 0.0001 s: as no timeout, a destination that never answers would keep its transfers."""
    sender = HttpSender(HttpPolicy(LOOPBACK))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender.begin(
            HttpRequest("token", f"http://127.0.0.1:{silent.getsockname()[1]}/", ["Expect:"], b"{}", timeout_ms=0)
        )
        answers = [answer.curl_code for _ in range(100) if sender.active for answer in sender.poll(0.1)]
        sender.close()
    assert answers == [pycurl.E_OPERATION_TIMEDOUT]


def test_rule_may_request_more_of_the_body():
    answer = posted(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 10_000, keep=MAX_ANSWER_BYTES)
    assert len(answer.body) == 10_000


@pytest.mark.parametrize("lines", [5_000, 20], ids=["endless", "20 KB: libcurl's own limit is 300 KB"])
def test_headers_beyond_the_limit_are_cut_off_and_the_status_counts(lines: int):
    filler = b"x-filler: " + b"y" * 1_000 + b"\r\n"
    answer = posted(b"HTTP/1.1 503 No\r\n", *[filler] * lines, b"content-length: 0\r\n\r\n")
    assert (answer.status, answer.curl_code) == (503, pycurl.E_WRITE_ERROR)


def test_compressed_bodies_are_not_decompressed():
    bomb = b"\x1f\x8b\x08\x00" + b"\x00" * 100
    answer = posted(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 104\r\n\r\n", bomb)
    assert answer.body == bomb


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_a_response_and_is_not_followed(status: int):
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        to = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"
        answer = posted(f"HTTP/1.1 {status} Go\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n".encode(), timeout_ms=500)
        assert (answer.status, answer.curl_code) == (status, 0)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def test_request_without_headers_sends_none_of_the_last_one():
    """A handle is reused for the requests of all tenants."""
    sender, received = HttpSender(HttpPolicy(LOOPBACK)), list[bytes]()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            for _ in range(2):
                received.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        for headers in (["Authorization: Bearer other"], []):
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            sender.begin(HttpRequest("token", url, headers, b"", 5_000, KEPT_BYTES))
            while sender.active:
                for answer in sender.poll(0.1):
                    assert answer.status == 204
        thread.join(10)
    sender.close()
    assert [b"Bearer other" in request for request in received] == [True, False]
