"""Live tail on real Kafka and behind the real web server: viewers see passing messages and delay nobody."""

import json
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from dataplane.ledger.peek import peek_headers
from localbox.ports import free_ports
from mgmt import sandbox
from mgmt.tail import PeekedCopy, TailCapacityError, TailCursor, TailFilter, TailHub, TailStream
from mgmt.tail.hub import MOST_VIEWERS, _Client
from mgmt.tail.viewer import TailTopic, TailViewer
from tests.support.broker import Broker
from tests.support.copies import copy_at
from tests.support.kafka import admin_producer, broker_admin
from tests.support.patience import until
from tests.support.served import Served

pytestmark = pytest.mark.kafka_role("web")
BIG = b"x" * 50_000
FLOOD = 2_000  # copies of BIG: a hundred megabytes


class Topic:
    """A tail topic and its producer."""

    def __init__(self, kafka: str) -> None:
        self.kafka, self.name = kafka, f"penstock.tail-{uuid.uuid4().hex[:8]}"
        admin = broker_admin(kafka)  # referenced until it has answered
        admin.create_topics([NewTopic(self.name, 1, 1)])[self.name].result(20)
        self._producer = admin_producer({"bootstrap.servers": kafka, "linger.ms": 1})

    def write(self, *copies: PeekedCopy) -> None:
        for copy in copies:
            self._producer.produce(self.name, copy.body, headers=peek_headers(copy.peek))
        assert self._producer.flush(20) == 0

    def stream(self, hub: TailHub, after: int | None = None, text: str = "") -> TailStream:
        cursor = None if after is None else TailCursor(1, after)
        return TailStream(hub, TailFilter(text), topic=self.name, generation=1, pipe="p", after=cursor)


@pytest.fixture
def topic(kafka_servers: str) -> Topic:
    return Topic(kafka_servers)


@pytest.fixture
def hub(kafka_servers: str) -> TailHub:
    return TailHub(kafka_servers)


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Topics that consumers have begun to read during the test, one for each consumer."""
    topics: list[str] = []

    class Noted(_Client):
        def follow(self, topic: str, feed: TailTopic, first: int) -> None:
            topics.append(topic)
            super().follow(topic, feed, first)

    monkeypatch.setattr(sys.modules["mgmt.tail.hub"], "_Client", Noted)
    return topics


def events(chunks: Iterator[bytes], name: str = "copy") -> Iterator[dict[str, Any]]:
    """Yield the data of the events of this name, parsed as in a browser."""
    for chunk in chunks:
        for block in chunk.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if line != ":")
            if fields.get("event") == name:
                yield {**json.loads(fields["data"]), "cursor": fields.get("id")}


def test_viewers_share_one_reader_and_each_sees_its_own_messages(topic: Topic, hub: TailHub, followed: list[str]):
    topic.write(copy_at(0, {"n": 0}))
    with closing(topic.stream(hub, -1)) as all_, closing(topic.stream(hub, -1, "body.n > 1")) as some:
        topic.write(copy_at(1, {"n": 1}), copy_at(2, {"n": 2}, pipe="q"), copy_at(3, {"n": 3}))
        from_all, from_some = events(iter(all_)), events(iter(some))
        assert [next(from_all)["body"] for _ in range(3)] == ['{"n":0}', '{"n":1}', '{"n":3}']
        found = next(from_some)
        assert (found["body"], found["cursor"], found["step"], found["node"]) == ('{"n":3}', "1-3", "here", "normalize")
        assert hub.viewers == 2
        assert followed.count(topic.name) == 1
    assert hub.viewers == 0
    until(lambda: hub._reader is None, "the reader leaves with the last viewer", 10)


def test_returning_viewer_continues_behind_its_cursor_though_the_reader_had_ended(topic: Topic, hub: TailHub):
    topic.write(*(copy_at(n, n) for n in range(3)))
    with closing(topic.stream(hub, -1)) as stream:
        assert next(events(iter(stream)))["cursor"] == "1-0"
    until(lambda: hub._reader is None, "the reader has left", 10)
    topic.write(copy_at(3, 3))
    with closing(topic.stream(hub, 0)) as stream:
        found = events(iter(stream))
        assert [next(found)["body"] for _ in range(3)] == ["1", "2", "3"]


def test_stream_without_messages_reports_every_second_its_liveness_and_cursor(topic: Topic, hub: TailHub):
    topic.write(copy_at(0, 0, pipe="q"))
    with closing(topic.stream(hub, -1)) as stream:
        told = events(iter(stream), "standing")
        found = [next(told) for _ in range(3)]
    assert found[-1] == {
        "shown": 0, "left_out": 0, "unjudged": 0, "missed": 0, "gap": False, "trouble": "", "cursor": "1-0",
    }  # fmt: skip


def test_viewer_misses_nothing_after_its_first_liveness_report(topic: Topic, kafka_servers: str):
    for number in range(10):
        with closing(topic.stream(TailHub(kafka_servers))) as stream:
            chunks = iter(stream)
            next(events(chunks, "standing"))
            topic.write(copy_at(number, number))
            assert next(events(chunks))["body"] == str(number)


def test_viewer_beyond_the_limit_is_refused(topic: Topic, hub: TailHub):
    viewers = [TailViewer("p") for _ in range(MOST_VIEWERS)]
    for viewer in viewers:
        hub.join(topic.name, viewer)
    with pytest.raises(TailCapacityError):
        topic.stream(hub)
    for viewer in viewers:
        hub.leave(topic.name, viewer)
    topic.stream(hub).close()


def test_unresponsive_brokers_are_reported():
    hub = TailHub(f"127.0.0.1:{free_ports(1)[0]}")
    with closing(TailStream(hub, TailFilter(), topic="none", generation=1, pipe="p")) as stream:
        states = events(iter(stream), "standing")
        until(lambda: next(states)["trouble"] == "the brokers do not respond", "the stream reports it", 20)


@pytest.mark.long
def test_one_consumer_reads_through_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made, tries = [], []

    class Counted(_Client):
        def __init__(self, kafka: str) -> None:
            made.append(kafka)
            super().__init__(kafka)

        def reset(self) -> None:
            tries.append(time.monotonic())
            super().reset()

    monkeypatch.setattr(sys.modules["mgmt.tail.hub"], "_Client", Counted)
    broker = Broker(tmp_path)
    broker.start()
    try:
        topic, hub = Topic(broker.address), TailHub(broker.address)
        with closing(topic.stream(hub, -1)) as stream:
            topic.write(copy_at(0, 0))
            assert next(events(iter(stream)))["body"] == "0"
            broker.kill()
            until(lambda: hub.trouble, "that the brokers are away is noticed", 30)
            until(lambda: len(tries) > 2, "it tries again and again", 60)
            broker.start()
            until(lambda: not hub.trouble, "the reader goes on", 30)
            topic.write(copy_at(1, 1))
            assert next(events(iter(stream)))["body"] == "1"
        assert len(made) == 1
    finally:
        broker.kill()


class TailServer(Served):
    """Live tail behind the web front that serves pages."""

    def viewers(self) -> int:
        return int(self.get("/viewers")[1])

    def look(self) -> socket.socket:
        """Request the stream of pipe p, and read nothing yet."""
        return self.connect(b"GET /tail/p HTTP/1.1\r\nHost: here\r\n\r\n")


@pytest.fixture
def served(topic: Topic, tmp_path: Path) -> Iterator[TailServer]:
    server = TailServer(
        "-m", "tests.support.front_server", "tests.support.tail_server", "{port}",
        log=tmp_path / "server.log", ready="/viewers",
        env={"PENSTOCK_KAFKA": topic.kafka, "PENSTOCK_TAIL_TOPIC": topic.name},
    )  # fmt: skip
    yield server
    server.close()


def test_browser_that_reads_nothing_delays_no_other_and_fills_no_memory(topic: Topic, served: TailServer):
    topic.write(copy_at(0, 0))
    slow, quick = served.look(), served.look()
    until(lambda: served.viewers() == 2, "both look on", 10)
    before = served.rss_bytes()
    topic.write(*(copy_at(n, raw=BIG) for n in range(FLOOD)))
    with quick.makefile("rb") as lines:
        began = time.monotonic()
        while b"last" not in (line := lines.readline()):
            assert line
            assert time.monotonic() - began < 60
            if line == b"event: standing\n":  # copies sent during the flood may be left out
                topic.write(copy_at(FLOOD, {"last": True}))
    assert served.rss_bytes() - before < 80_000_000  # of a hundred that passed; the buffer is bounded
    for one in (slow, quick):
        one.close()
    until(lambda: served.viewers() == 0, "both are known to be gone", 10)


def test_terminating_server_does_not_wait_for_viewers(topic: Topic, served: TailServer):
    with closing(served.look()):
        until(lambda: served.viewers() == 1, "somebody looks on", 10)
        began = time.monotonic()
        served.process.terminate()
        served.process.wait(30)
        assert time.monotonic() - began < 8


def test_filter_over_its_budget_ends_only_its_own_stream(topic: Topic, hub: TailHub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "MESSAGE_S", 0.005)
    with (
        closing(topic.stream(hub, -1, "body.l.all(x, x >= 0)")) as slow,
        closing(topic.stream(hub, -1, "meta.id != ''")) as other,
    ):
        from_slow, from_other = iter(slow), iter(other)
        topic.write(copy_at(0, {"l": [1e300] * 60_000}))  # slow numbers: 20 ms to decode on a fast machine
        (ended,) = events(from_slow, "refused")
        assert ended["reason"] == "The filter needs more than 5 ms of CPU time for one message. Use a simpler one."
        assert next(from_slow, None) is None, "the stream has ended"
        topic.write(copy_at(1, {"n": 1}))
        found = events(from_other)
        assert [next(found)["message"] for _ in range(2)] == ["id-0", "id-1"]


def test_copies_for_which_a_filter_had_no_time_are_evaluated_in_the_next_turn(
    topic: Topic, hub: TailHub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "SLICE_S", 0.0)  # one copy per turn
    topic.write(*(copy_at(n, n) for n in range(30)))
    with closing(topic.stream(hub, -1, "body >= 0")) as stream:
        found = events(iter(stream))
        assert [next(found)["body"] for _ in range(30)] == [str(n) for n in range(30)]
