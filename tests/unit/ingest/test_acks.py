"""Delivery reports of a request: each is matched to its record; a partition counts fully or not at all."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ingest import acks as acks_module
from dataplane.ingest.acks import AckTracker, RequestRecords
from dataplane.ingest.stamp import PartitionSpreader, partition_of
from dataplane.ingest.topic_throttle import TopicThrottle
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from tests.support.reports import Report

REFUSED = KafkaError(KafkaError._MSG_TIMED_OUT)


def batch_of(partitions: Sequence[int], *, begun: bool = True) -> tuple[RequestRecords, list[RequestRecords]]:
    """Return a request whose records went to these partitions; `begun`: all of them are produced."""
    with asyncio.Runner() as runner:
        batch = RequestRecords(
            "request",
            TopicThrottle(Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}), "t"),
            runner.get_loop(),
        )
    done: list[RequestRecords] = []
    for number, partition in enumerate(partitions):
        batch.numbers[partition].append(number)
    if begun:
        batch.begin(len(partitions), done)
    return batch, done


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_each_record_gets_its_partition_and_offset_however_the_reports_are_mixed(partitions: list[int], random: Random):
    batch, done = batch_of(partitions)
    places = [(partition, 100 + number * 3) for number, partition in enumerate(partitions)]
    order = sorted(range(len(partitions)), key=lambda number: (random.random(), number))
    waiting = {partition: iter([place for place in places if place[0] == partition]) for partition in partitions}
    for number in order:
        assert not done
        batch.report(None, Report(*next(waiting[partitions[number]])))
    assert done == [batch]
    assert batch.places == places


@pytest.mark.parametrize(
    "reports",
    [
        pytest.param([(None, 7), (REFUSED, None)], id="one was not stored"),
        pytest.param([(None, 7), (None, None)], id="nobody can say where"),
        pytest.param([(None, 8), (None, 7)], id="not in the order in which they were produced"),
    ],
)
def test_partition_counts_fully_or_not_at_all(reports: list[tuple[KafkaError | None, int | None]]):
    batch, done = batch_of([0, 1, 0])
    for error, offset in reports:
        batch.report(error, Report(0, offset))
    batch.report(None, Report(1, 4))
    assert done == [batch]
    assert batch.places == [None, (1, 4), None]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.data())
def test_reports_may_arrive_while_the_request_is_still_producing(partitions: list[int], data: st.DataObject):
    batch, done = batch_of(partitions, begun=False)
    places = [(partition, 100 + number * 3) for number, partition in enumerate(partitions)]
    early = data.draw(st.integers(0, len(places)))
    for place in places[:early]:
        batch.report(None, Report(*place))
    assert not done
    batch.begin(len(places), done)
    for place in places[early:]:
        assert not done
        batch.report(None, Report(*place))
    assert done == [batch]
    assert batch.places == places


def test_record_that_a_failed_instance_stored_is_not_acked():
    """The new instance may be given the same offset."""
    producer = ReplaceableProducer(lambda: Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}))
    with asyncio.Runner() as runner:
        batch = RequestRecords("request", TopicThrottle(producer, "t"), runner.get_loop())
    for number, partition in enumerate([0, 1]):
        batch.numbers[partition].append(number)
    batch.begin(2, [])
    batch.report(None, Report(0, 7))
    producer.is_draining = True
    batch.report(None, Report(1, 7))
    assert batch.places == [(0, 7), None]


def test_offset_reported_twice_by_one_producer_is_not_acked():
    batch, done = batch_of([0, 1])
    batch.report(None, Report(0, 7))
    batch.report(None, Report(1, 7))
    following, done = RequestRecords("next", batch.pace, batch.future.get_loop()), []
    following.numbers[0].append(0)
    following.begin(1, done)
    following.report(None, Report(0, 7))
    assert (following.places, following.reused) == ([None], [(0, 7)])
    batch.pace.restart()
    after = RequestRecords("after", batch.pace, batch.future.get_loop())
    after.numbers[0].append(0)
    after.begin(1, done)
    after.report(None, Report(0, 3))
    assert (after.places, after.reused) == ([(0, 3)], []), "another producer starts from its own offsets"


def test_keys_map_to_the_partitions_that_librdkafka_would_choose():
    producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    found: dict[bytes, int] = {}
    keys = [f"pipe\0{number}".encode() for number in range(50)]
    for key in keys:
        producer.produce("t", b"v", key, on_delivery=lambda _error, m: found.update({m.key(): m.partition()}))
    assert producer.flush(20) == 0
    partitions = len(producer.list_topics("t").topics["t"].partitions)
    assert partitions > 1
    assert found == {key: partition_of(key, partitions) for key in keys}


def test_records_without_a_key_use_each_partition_in_turn_for_ten_milliseconds():
    spread = PartitionSpreader(6)
    assert [spread.at(now_us, 4) for now_us in range(1_000, 51_000, 5_000)] == [3, 3, 0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("failing", ["poll", "on_done"])
def test_exception_in_one_pass_fails_no_later_request(failing: str):
    """One pass without a thread or a descriptor: its requests may fail, those after it are answered."""
    faults = [OSError("no descriptor is left")]

    class Failing:
        def poll(self, _wait_s: float) -> int:
            if failing == "poll" and faults:
                raise faults.pop()
            return 0

        def send_now(self) -> None:
            self.poll(0)

        def produce(self, *_record: object) -> None:
            """Do nothing: the test makes the reports."""

    def on_done(_batches: list[RequestRecords]) -> None:
        if failing == "on_done" and faults:
            raise faults.pop()

    async def requests() -> list[str]:
        producer: Any = Failing()  # only poll is used
        acks, found = AckTracker(producer, on_done), []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        for _ in range(3):
            batch = RequestRecords("request", acks.pace("t"), loop)
            batch.numbers[0].append(0)
            acks.produced(batch, 1)
            batch.report(None, Report(0, 7))
            try:
                await asyncio.wait_for(batch.future, 5)
                found.append("answered")
            except OSError:
                found.append("failed")
        return found

    assert asyncio.run(requests()) == (["answered"] * 3 if failing == "poll" else ["failed", "answered", "answered"])


class CountingProducer:
    """Producer that stores a record when it is polled or sent, and counts both."""

    def __init__(self) -> None:
        self.waiting: list[RequestRecords] = []
        self.sent_now = self.polls = 0

    def poll(self, _wait_s: float) -> None:
        self.polls += 1
        for batch in self.waiting:
            batch.report(None, Report(0, self.polls))
        self.waiting.clear()

    def send_now(self) -> None:
        self.sent_now += 1

    def produce(self, *_record: object) -> None:
        """Do nothing: the test makes the reports."""


def test_first_request_after_a_quiet_moment_is_sent_at_once_and_the_next_ones_share_a_batch(
    monkeypatch: pytest.MonkeyPatch,
):
    producer: Any = CountingProducer()
    quiet_s = 0.5  # long enough that a busy machine does not make it quiet
    monkeypatch.setattr(acks_module, "QUIET_S", quiet_s)

    async def requests() -> list[int]:
        loop, found = asyncio.get_running_loop(), []
        acks = AckTracker(producer, lambda _batches: None)
        for pause_s in (0.0, 0.0, 0.0, 2 * quiet_s):
            await asyncio.sleep(pause_s)
            batch = RequestRecords("request", acks.pace("t"), loop)
            batch.numbers[0].append(0)
            producer.waiting.append(batch)
            acks.produced(batch, 1)
            await asyncio.wait_for(batch.future, 5)
            found.append(producer.sent_now)
        return found

    assert asyncio.run(requests()) == [1, 1, 1, 2]


def test_requests_of_one_pass_of_the_loop_are_sent_together():
    producer: Any = CountingProducer()

    async def requests() -> None:
        loop = asyncio.get_running_loop()
        acks = AckTracker(producer, lambda _batches: None)
        batches = [RequestRecords("request", acks.pace("t"), loop) for _ in range(5)]
        for batch in batches:
            batch.numbers[0].append(0)
            producer.waiting.append(batch)
            acks.produced(batch, 1)
        assert producer.sent_now == 0, "not before the last of them"
        await asyncio.wait_for(asyncio.gather(*[batch.future for batch in batches]), 5)

    asyncio.run(requests())
    assert (producer.sent_now, producer.polls) == (1, 1)
