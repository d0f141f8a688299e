"""Senders and receivers implement HTTP themselves, so their parsing is tested byte by byte."""

import hashlib

import pytest

from loadgen.receiver import delivery_line
from loadgen.wire import CONTINUE, REFUSAL, IngestTarget, RequestParser, parse_response

BODY = b'{"a": 1}'
REQUEST = (
    b"POST /hook HTTP/1.1\r\nHost: x\r\nWebhook-Id: msg_1\r\npenstock-position: 1-2-3\r\nContent-Length: 8\r\n\r\n"
    + BODY
)


def test_request_is_read_and_logged_with_id_position_and_digest():
    requests, more, stays_open = RequestParser().feed(REQUEST)
    assert (len(requests), more, stays_open) == (1, b"", True)
    assert (requests[0].path, requests[0].body) == ("/hook", BODY)
    line = delivery_line(requests[0]).decode()
    assert line.split("\t")[1:] == ["msg_1", "1-2-3", hashlib.sha256(BODY).hexdigest() + "\n"]


def test_request_in_fragments_is_read_when_it_is_complete():
    parser = RequestParser()
    for byte in REQUEST[:-1]:
        assert parser.feed(bytes([byte])) == ([], b"", True)
    requests, more, _ = parser.feed(REQUEST[-1:])
    assert (len(requests), more) == (1, b"")


def test_pipelined_requests_are_read_and_an_incomplete_one_is_kept():
    parser = RequestParser()
    assert len(parser.feed(REQUEST * 2 + REQUEST[:-2])[0]) == 2
    assert len(parser.feed(REQUEST[-2:])[0]) == 1


def test_client_that_expects_100_continue_gets_it_once():
    parser = RequestParser()
    waiting = REQUEST.replace(b"Host: x", b"Expect: 100-continue").removesuffix(BODY)
    assert parser.feed(waiting) == ([], CONTINUE, True)
    assert parser.feed(BODY[:2]) == ([], b"", True)
    requests, more, _ = parser.feed(BODY[2:])
    assert (len(requests), more) == (1, b"")


def test_body_without_content_length_is_refused():
    chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert RequestParser().feed(chunked) == ([], REFUSAL, False)


def test_endless_header_section_closes_the_connection():
    assert RequestParser().feed(b"x" * 100_000)[2] is False


@pytest.mark.parametrize(
    ("read", "parsed"),
    [
        (b"HTTP/1.1 202 Accepted\r\ncontent-le", None),
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\n{}", None),
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}", (202, b"{}", True)),
        (b"HTTP/1.1 503 No\r\nConnection: close\r\ncontent-length: 0\r\n\r\n", (503, b"", False)),
    ],
)
def test_response_is_parsed_when_it_is_complete(read: bytes, parsed: tuple[int, bytes, bool] | None):
    response = parse_response(read)
    assert (response and response[:3]) == parsed


def test_several_events_are_sent_as_ndjson_and_one_as_json():
    target = IngestTarget.of("http://127.0.0.1:8801", "psk_x")
    assert target.request([BODY]).startswith(
        b"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1:8801\r\nauthorization: Bearer psk_x\r\n"
    )
    assert target.request([BODY]).endswith(b"content-type: application/json\r\ncontent-length: 8\r\n\r\n" + BODY)
    assert target.request([BODY, BODY]).endswith(b"x-ndjson\r\ncontent-length: 17\r\n\r\n" + BODY + b"\n" + BODY)
