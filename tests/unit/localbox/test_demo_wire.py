"""The demo's sender and receiver implement HTTP themselves, so their parsing is tested byte by byte."""

import hashlib
import socket
from pathlib import Path

import pytest

from localbox.demo.logs import read_received, read_sent
from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.demo.receiver import ANSWER, CONTINUE, REFUSAL, ReceiverConnection
from localbox.demo.sender import DemoTarget, parse_answer
from localbox.errors import BoxError

BODY = b'{"a": 1}'
REQUEST = (
    b"POST / HTTP/1.1\r\nHost: x\r\nWebhook-Id: msg_1\r\npenstock-position: 1-2-3\r\nContent-Length: 8\r\n\r\n" + BODY
)


@pytest.fixture
def connection():
    with socket.socket() as sock:
        yield ReceiverConnection(sock)


def test_request_is_answered_and_logged_with_id_position_and_digest(connection: ReceiverConnection):
    lines, answer, go_on = connection.feed(REQUEST)
    assert (answer, go_on) == (ANSWER, True)
    assert lines[0].split("\t")[1:] == ["msg_1", "1-2-3", hashlib.sha256(BODY).hexdigest() + "\n"]


def test_request_in_fragments_is_answered_when_it_is_complete(connection: ReceiverConnection):
    for byte in REQUEST[:-1]:
        assert connection.feed(bytes([byte])) == ([], b"", True)
    lines, answer, _ = connection.feed(REQUEST[-1:])
    assert (len(lines), answer) == (1, ANSWER)


def test_two_pipelined_requests_get_two_responses(connection: ReceiverConnection):
    lines, answer, _ = connection.feed(REQUEST * 2)
    assert (len(lines), answer) == (2, ANSWER * 2)


def test_client_that_expects_100_continue_gets_it_once(connection: ReceiverConnection):
    waiting = REQUEST.replace(b"Host: x", b"Expect: 100-continue").removesuffix(BODY)
    assert connection.feed(waiting) == ([], CONTINUE, True)
    assert connection.feed(BODY[:2]) == ([], b"", True)
    assert connection.feed(BODY[2:])[1] == ANSWER


def test_body_without_content_length_is_refused(connection: ReceiverConnection):
    assert connection.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == ([], REFUSAL, False)


def test_endless_header_section_closes_the_connection(connection: ReceiverConnection):
    assert connection.feed(b"x" * 100_000)[2] is False


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
    assert parse_answer(read) == parsed


def test_several_events_are_sent_as_ndjson_and_one_as_json():
    target = DemoTarget.of("http://127.0.0.1:8801", "psk_x")
    assert target.request([BODY]).endswith(b"content-type: application/json\r\ncontent-length: 8\r\n\r\n" + BODY)
    assert target.request([BODY, BODY]).endswith(b"x-ndjson\r\ncontent-length: 17\r\n\r\n" + BODY + b"\n" + BODY)


def test_shipped_events_match_the_digest_in_their_readme():
    digest = hashlib.sha256(SHIPPED.read_bytes()).hexdigest()
    assert digest in (SHIPPED.parent / "README.md").read_text()
    assert len(read_payloads(SHIPPED)) == 329


def test_file_without_events_is_refused_by_name(tmp_path: Path):
    (tmp_path / "none.jsonl").write_text("\n\n")
    with pytest.raises(BoxError, match=r"EVENTS: .*none.jsonl holds no events"):
        read_payloads(tmp_path / "none.jsonl")


def test_logs_are_read_without_an_incomplete_last_line(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("0\t1\t2\t202\tmsg_1\t1-0-7\t29\tab\n1\t1\t2\t0\t\t\t0\tcd\n2\t1")
    first, second = read_sent(log)
    assert (first.status, first.position, first.may_be_stored) == (202, (1 << 54) + 7, False)
    assert (second.position, second.may_be_stored) == (None, True)
    log.write_text("5\tmsg_1\t1-0-7\tab\n")
    assert [line.message_id for line in read_received(log)] == ["msg_1"]
