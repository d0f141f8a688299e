"""A message without a valid request is dead with its cause; the lane continues and sends nothing else."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.meta import read_meta
from dataplane.plan.outbound import message_headers
from dataplane.plan.stage import StageError
from dataplane.spec import BatchSettings, TopicDestination
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.deliveries import rendered_delivery
from dataplane.transmit.deliveries.batches import read_items
from dataplane.transmit.http.sender import HttpPolicy, HttpRequest, HttpResponse, HttpSender, are_safe
from dataplane.transmit.policy.delivery_verdict import DeliveryOutcome
from dataplane.transmit.policy.tokens import MAX_LIFE_S, read_token
from tests.support.cpu import grows_faster
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import NODE, MemoryProducer, destination, opened, without_kafka

INJECTIONS = [
    pytest.param("ce_x\r\nhost: evil", id="another header"),
    pytest.param("ce_x: 1\r\n\r\nPOST /admin HTTP/1.1", id="a second request"),
    pytest.param("ce_x\n", id="a line feed"),
    pytest.param("ce_x: y", id="a colon"),
    pytest.param("ce_\u00e9", id="not ASCII"),
    pytest.param("ce_\x00", id="NUL"),
    pytest.param("ce_", id="no name"),
]


@contextmanager
def recording() -> Iterator[tuple[str, list[bytes]]]:
    """Serve 200 to any request, one connection after the other, and record what was read."""
    seen: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                seen.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", seen
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def sent(*posts: HttpRequest) -> dict[Any, HttpResponse]:
    answers: dict[Any, HttpResponse] = {}
    with closing(HttpSender(HttpPolicy((ip_network("127.0.0.0/8"),)))) as sender:
        for post in posts:
            sender.begin(post)
        while sender.active:
            answers |= {answer.token: answer for answer in sender.poll(0.1)}
    return answers


@pytest.mark.parametrize(
    "line",
    [
        "x: a\r\nevil: 1",
        "x: a\nevil: 1",
        "x: a\r\n\r\nPOST / HTTP/1.1",
        "x\u00e9: 1",
        "x: \u00e9",
        "x: \0",
        "\n",
        "x: \ud800",
    ],
)
def test_line_with_more_than_one_header_never_leaves_the_sender(line: str):
    with recording() as (url, seen):
        answers = sent(
            HttpRequest("bad", url, ["a: 1", line], b"{}", 5_000), HttpRequest("good", url, ["a: 1"], b"{}", 5_000)
        )
    verdict = answers["bad"].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.cause) == (DeliveryOutcome.DEAD, "header-invalid")
    assert answers["good"].status == 200
    assert len(seen) == 1


@pytest.mark.parametrize(
    "post",
    [
        pytest.param(HttpRequest("bad", "http://\ud800/", [], b"{}", 5_000), id="half a character in the address"),
        pytest.param(HttpRequest("bad", "http://a/", [], None, 5_000), id="a body of another type"),  # type: ignore[arg-type]
        pytest.param(HttpRequest("bad", "http://a/", [], b"{}", 10**400), id="a timeout that is no int of C"),
    ],
)
def test_no_request_makes_the_sender_raise(post: HttpRequest):
    with recording() as (url, seen):
        answers = sent(post, HttpRequest("good", url, [], b"{}", 5_000))
    assert answers["bad"].verdict is not None
    assert answers["bad"].verdict.outcome is not DeliveryOutcome.DELIVERED
    assert (answers["good"].status, len(seen)) == (200, 1)


@given(st.lists(st.text()))
def test_header_lines_are_safe_only_if_each_is_one_line_of_ascii(headers: list[str]):
    one_line = all(line.isascii() and not set(line) & set("\r\n\0") for line in headers)
    assert are_safe(headers) == one_line


def test_request_that_could_not_start_can_be_cancelled():
    with closing(HttpSender(HttpPolicy())) as sender:
        sender.begin(HttpRequest("bad", "http://a/", ["\n"], b"", 1_000))
        assert sender.active == 1
        assert sender.cancel_all() == ["bad"]
        assert (sender.active, list(sender.poll(0))) == (0, [])


@pytest.mark.parametrize("name", INJECTIONS)
def test_attribute_that_could_inject_a_header_makes_no_request(name: str):
    with pytest.raises(StageError, match="header-invalid"):
        message_headers([], read_meta(message(5).headers()), [(name, b"v")], 0, "")


# -- in a lane -----------------------------------------------------------------------------------------------------


@pytest.fixture
def _memory(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


def causes(lane: MemoryLane) -> list[bytes]:
    return [dict(record["headers"])["penstock-cause"] for record in lane.producer.of(lane.cell.topics["dead"].name)]


@pytest.mark.parametrize("name", INJECTIONS)
@pytest.mark.usefixtures("_memory")
def test_message_with_an_injecting_attribute_is_dead_and_the_next_is_sent(tmp_path: Path, name: str):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, more=[(name, b"v")]), message(6, more=[("ce_x", b"v")]))
    work.poll()
    assert causes(lane) == [b"header-invalid"]
    assert len(sender.requests) == 1
    assert "ce-x: v" in sender.requests[0][1]
    lane.store()
    sender.answer(200)
    work.poll()
    assert lane.filed() == {(NODE, "dead", "header-invalid"): 1, (NODE, "delivered", ""): 1}
    work.close()


@pytest.mark.usefixtures("_memory")
def test_message_whose_request_raises_an_internal_error_is_dead_and_the_next_is_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    lane, work, sender = opened(tmp_path, destination())
    made = work._queues.request_of

    def request_of(send: Any, *rest: Any) -> Any:
        if send.body == b'"bad"':
            raise ZeroDivisionError
        return made(send, *rest)

    work._queues.request_of = request_of
    lane.take(message(5, b'"bad"'), message(6, b'"good"'))
    work.poll()
    assert causes(lane) == [b"request-invalid"]
    assert [body for _, _, body, _ in sender.requests] == [b'"good"']
    assert "could not build a request" in caplog.text
    work.close()


@pytest.mark.usefixtures("_memory")
def test_only_the_faulty_message_of_a_batch_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def batch_body(members: Any, _format: str) -> bytes:
        bodies = [send.body for send in members]
        if b'"bad"' in bodies:
            raise ZeroDivisionError
        return b",".join(bodies)

    monkeypatch.setattr(rendered_delivery, "batch_body", batch_body)
    lane, work, sender = opened(tmp_path, destination(batch=BatchSettings(max_events=4, max_wait_ms=0)))
    lane.take(*(message(offset, body) for offset, body in enumerate([b"1", b"2", b'"bad"', b"4"], 5)))
    for _ in range(4):
        work.poll()
    assert causes(lane) == [b"request-invalid"]
    assert b",".join(body for _, _, body, _ in sender.requests).split(b",") == [b"1", b"2", b"4"]
    work.close()


@pytest.mark.usefixtures("_memory")
def test_record_that_the_producer_refuses_is_dead_and_the_next_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Picky(MemoryProducer):
        def produce(self, topic: str, value: bytes, key: bytes | None, *, on_delivery: Any, headers: Any) -> None:
            if value == b'"bad"':
                raise TypeError("a header's value")
            super().produce(topic, value, key, on_delivery=on_delivery, headers=headers)

    producer = Picky()
    lane, work, _ = opened(tmp_path, DestinationRecord("p", "crm", 1, "active", TopicDestination(), []))
    monkeypatch.setattr(work._writer, "_open", lambda: producer)
    lane.take(message(5, b'"bad"'), message(6, b'"good"'))
    work.poll()
    work.poll()
    assert causes(lane) == [b"request-invalid"]
    assert [record.value for record in producer.sent] == [b'"good"']
    work.close()


# -- what a receiver says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("life", [b"1" + b"0" * 400, b"1e308", b"-1" + b"0" * 400, b'"1"', b'"' + b"9" * 400 + b'"'])
def test_token_lifetime_never_exceeds_the_maximum(life: bytes):
    _, life_s = read_token(200, b'{"access_token": "t", "expires_in": %b}' % life)
    assert 0 < life_s <= MAX_LIFE_S


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xfe\xfd",
        b"HTTP/1.1 \xff\xff\xff\r\n\r\n",
        b"HTTP/1.1 200 \xff\xff\r\ncontent-length: \xff\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\xff\xff\xff\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\xff\xff\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nretry-after: \xff\0\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://\xff\r\ncontent-length: 0\r\n\r\n",
    ],
)
def test_no_response_makes_the_sender_raise(answer: bytes):
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        answers = sent(HttpRequest("it", f"http://127.0.0.1:{listener.getsockname()[1]}/", ["Expect:"], b"{}", 5_000))
        thread.join(10)
    assert list(answers) == ["it"]


def test_time_to_read_item_results_grows_with_their_bytes():
    ids = [f"id-{number:04}" for number in range(1_000)]

    def answer(size: int) -> bytes:
        return b"[" + b'{"id":"id-0999","status":200},' * (size // 30) + b'{"id":"id-0000","status":200}]'

    assert grows_faster(lambda body: read_items(body, ids[: len(body) // 256]), answer, (4_096, 32_768, 262_144)) == ""
