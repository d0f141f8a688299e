"""Sender and receiver over real sockets: retries, closed connections, timeouts, and the two processes."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from loadgen import sender as sending
from loadgen.events import EventSender, LoadRefusedError, Payload, SendOutcome
from loadgen.measured import EVENT, LoadOrder, LoadResult, SenderCommand, SenderReport
from loadgen.plan import SendPlan
from loadgen.scripted import Behaviour, Received, Receiver, status
from loadgen.wire import IngestTarget
from localbox.settings import ROOT
from tests.support.behaviours import close, hang, once

ENV = {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}


@pytest.fixture
def ingest() -> Iterator[Receiver]:
    """Answer as ingest does: 202 with an id for each event."""
    receiver = Receiver()
    receiver.answers["/v1/events"] = accepting
    yield receiver
    receiver.close()


async def accepting(writer: asyncio.StreamWriter, received: Received) -> bool:
    events = received.body.splitlines() if "ndjson" in received.headers["content-type"] else [received.body]
    if received.body.startswith(b"["):
        events = json.loads(received.body)
    items = [{"id": f"m{number}", "position": "1-0-7", "bucket": 9, "status": 202} for number, _ in enumerate(events)]
    answer = items[0] if len(items) == 1 else {"items": items}
    return await status(202, body=json.dumps(answer).encode())(writer, received)


def send(ingest: Receiver, *, count: int = 3, batch: int = 1, **more: object) -> list[SendOutcome]:
    outcomes: list[SendOutcome] = []
    EventSender(
        IngestTarget("127.0.0.1", ingest.port, "psk_x"),
        SendPlan(None, count=count, batch=batch),
        event_of=lambda number: Payload.of(b'{"n": %d}' % number),
        on_outcome=outcomes.append,
        connections=2,
        **more,  # type: ignore[arg-type]  # limits of one test
    ).run()
    return outcomes


def test_every_event_is_sent_and_reported_with_its_ack(ingest: Receiver):
    outcomes = send(ingest, count=5, batch=2)
    assert sorted(outcome.number for outcome in outcomes) == [0, 1, 2, 3, 4]
    assert {(one.status, one.position, one.bucket) for one in outcomes} == {(202, "1-0-7", 9)}
    assert {one.sha256 for one in outcomes} == {Payload.of(b'{"n": %d}' % n).sha256 for n in range(5)}
    assert {request.headers["authorization"] for request in ingest.got["/v1/events"]} == {"Bearer psk_x"}
    assert ingest.connections == 2


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (status(503, "retry-after: 7\r\n"), (503, "7")),
        (status(401, "connection: close\r\n"), (401, "")),
        (close, (0, "")),
    ],
)
def test_event_without_an_ack_is_sent_until_it_is_acked(ingest: Receiver, first: Behaviour, found: tuple[int, str]):
    ingest.answers["/v1/events"] = once(first, accepting)  # the first request: these have no webhook id
    outcomes = send(ingest, refused_retry_s=0.01)
    assert sorted(one.number for one in outcomes if one.status == 202) == [0, 1, 2]
    assert [(one.status, one.retry_after) for one in outcomes if one.status != 202] == [found]


def test_request_without_an_answer_ends_after_the_timeout(ingest: Receiver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.3)
    ingest.answers["/v1/events"] = once(hang, accepting)
    assert sorted(one.status for one in send(ingest)) == [0, 202, 202, 202]


def test_sender_fails_if_ingest_keeps_refusing(ingest: Receiver):
    ingest.answers["/v1/events"] = 403
    with pytest.raises(LoadRefusedError, match="keeps returning 403 for event 0"):
        send(ingest, count=1, refused_limit_s=0.05, refused_retry_s=0.1)


def test_events_are_sent_once_if_they_are_not_to_be_sent_again(ingest: Receiver):
    ingest.answers["/v1/events"] = 429
    assert [one.status for one in send(ingest, retries=False)] == [429, 429, 429]
    assert len(ingest.got["/v1/events"]) == 3


def started(*words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", *words]
    return subprocess.Popen(command, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ordered(process: "subprocess.Popen[bytes]", *lines: msgspec.Struct) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    process.stdin.flush()


def answered(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def test_process_sends_an_ordered_number_of_events_and_reports_their_ids(ingest: Receiver):
    with started("loadgen.measured") as process:
        began_ns = time.time_ns()
        ordered(process, LoadOrder(ingest.url(""), "psk_x", batch=5, connections=2, count=20))
        result = msgspec.json.decode(answered(process), type=LoadResult)
    requests = ingest.got["/v1/events"]
    assert [request.body for request in requests] == [b"[" + b",".join([EVENT] * 5) + b"]"] * 4
    assert result.sent.keys() == {f"m{number}" for number in range(5)}
    assert all(began_ns < at_ns < time.time_ns() for at_ns in result.sent.values())
    assert (result.refused, result.seconds > 0) == ({}, True)


def test_process_sends_at_the_rate_of_its_parent_and_ends_with_its_input(ingest: Receiver):
    with started("loadgen.measured") as process:
        ordered(process, LoadOrder(ingest.url(""), "psk_x"), SenderCommand(rate=100.0))
        while len(ingest.got["/v1/events"]) < 10:
            time.sleep(0.01)
        ingest.answers["/v1/events"] = 503
        count = len(ingest.got["/v1/events"])
        while len(ingest.got["/v1/events"]) < count + 20:  # of which the last may not be answered yet
            time.sleep(0.01)
        ordered(process, SenderCommand(rate=0.0, report=True))
        report = msgspec.json.decode(answered(process), type=SenderReport)
        assert report.acked >= 10
        assert report.refused >= 10
        assert 0 < report.ack_p95_us < report.span_s * 1e6
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def test_attached_receiver_takes_another_port_answers_logs_and_ends_with_its_input(tmp_path: Path, ingest: Receiver):
    words = ("--port", str(ingest.port), "--log", str(tmp_path / "folder" / "log"), "--attached")
    with started("loadgen.receiver", *words) as process:
        port = int(answered(process))
        assert port != ingest.port
        outcomes: list[SendOutcome] = []
        EventSender(
            IngestTarget("127.0.0.1", port, "psk_x"),
            SendPlan(None, count=4),
            event_of=lambda number: Payload.of(b"%d" % number),
            on_outcome=outcomes.append,
            connections=2,
            retries=False,
        ).run()
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0
    assert [one.status for one in outcomes] == [204] * 4
    digests = {line.split("\t")[3] for line in (tmp_path / "folder" / "log").read_text().splitlines()}
    assert digests == {one.sha256 for one in outcomes}
