"""The demo's sender and receiver speak HTTP by hand, so their parsing is tested byte by byte."""

import hashlib
import socket
from pathlib import Path

import pytest

from localbox.demo.logs import read_received, read_sent
from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.demo.receiver import ANSWER, CONTINUE, REFUSAL, Connection
from localbox.demo.sender import Target, parse_answer
from localbox.errors import BoxError

BODY = b'{"a": 1}'
REQUEST = (
    b"POST / HTTP/1.1\r\nHost: x\r\nWebhook-Id: msg_1\r\npenstock-position: 1-2-3\r\nContent-Length: 8\r\n\r\n" + BODY
)


@pytest.fixture
def connection():
    with socket.socket() as sock:
        yield Connection(sock)


def test_a_request_is_answered_and_logged_with_id_position_and_digest(connection: Connection):
    lines, answer, go_on = connection.feed(REQUEST)
    assert (answer, go_on) == (ANSWER, True)
    assert lines[0].split("\t")[1:] == ["msg_1", "1-2-3", hashlib.sha256(BODY).hexdigest() + "\n"]


def test_a_request_in_pieces_is_answered_when_it_is_whole(connection: Connection):
    for byte in REQUEST[:-1]:
        assert connection.feed(bytes([byte])) == ([], b"", True)
    lines, answer, _ = connection.feed(REQUEST[-1:])
    assert (len(lines), answer) == (1, ANSWER)


def test_two_requests_at_once_get_two_answers(connection: Connection):
    lines, answer, _ = connection.feed(REQUEST * 2)
    assert (len(lines), answer) == (2, ANSWER * 2)


def test_a_client_that_waits_for_100_is_told_to_go_on_once(connection: Connection):
    waiting = REQUEST.replace(b"Host: x", b"Expect: 100-continue").removesuffix(BODY)
    assert connection.feed(waiting) == ([], CONTINUE, True)
    assert connection.feed(BODY[:2]) == ([], b"", True)
    assert connection.feed(BODY[2:])[1] == ANSWER


def test_a_body_of_unstated_length_is_refused(connection: Connection):
    assert connection.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == ([], REFUSAL, False)


def test_a_head_without_end_is_cut_off(connection: Connection):
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
def test_an_answer_is_read_when_it_is_whole(read: bytes, parsed: tuple[int, bytes, bool] | None):
    assert parse_answer(read) == parsed


def test_several_events_go_as_ndjson_and_one_as_it_is():
    target = Target.of("http://127.0.0.1:8801", "psk_x")
    assert target.request([BODY]).endswith(b"content-type: application/json\r\ncontent-length: 8\r\n\r\n" + BODY)
    assert target.request([BODY, BODY]).endswith(b"x-ndjson\r\ncontent-length: 17\r\n\r\n" + BODY + b"\n" + BODY)


def test_the_shipped_events_are_those_their_readme_names():
    digest = hashlib.sha256(SHIPPED.read_bytes()).hexdigest()
    assert digest in (SHIPPED.parent / "README.md").read_text()
    assert len(read_payloads(SHIPPED)) == 329


def test_a_file_without_events_is_refused_by_name(tmp_path: Path):
    (tmp_path / "none.jsonl").write_text("\n\n")
    with pytest.raises(BoxError, match=r"EVENTS: .*none.jsonl holds no events"):
        read_payloads(tmp_path / "none.jsonl")


def test_logs_are_read_back_without_the_line_that_is_still_being_written(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("0\t1\t2\t202\tmsg_1\t1-0-7\t29\tab\n1\t1\t2\t0\t\t\t0\tcd\n2\t1")
    first, second = read_sent(log)
    assert (first.status, first.position, first.may_be_stored) == (202, (1 << 54) + 7, False)
    assert (second.position, second.may_be_stored) == (None, True)
    log.write_text("5\tmsg_1\t1-0-7\tab\n")
    assert [line.message_id for line in read_received(log)] == ["msg_1"]
