"""Later messages of a key wait behind its failed one: in the lane, across both lanes, and after crashes."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import position_of
from dataplane.spec import RetryPolicy
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, MemoryMessage, message
from tests.support.transmitting import NODE, Clock, MemorySender, MemorySignals, destination, opened, without_kafka


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def ordered(**fields: Any) -> Any:
    return destination(ordered=True, **fields)


def ready(tmp_path: Path, clock: Clock, *, kind: Any = "transmit", **fields: Any) -> Any:
    """Return a lane that has owned its partition for a while."""
    lane, work, sender = opened(tmp_path, ordered(**fields), kind=kind)
    lane.take(message(0, key=b"crm\0other"))
    work.poll()
    clock.advance(2)
    work.poll()
    sender.answer(204)
    work.poll()
    work.poll()
    lane.store()
    work.poll()
    lane.filed()
    lane.producer.sent.clear()
    sender.requests.clear()
    return lane, work, sender


def positions(lane: MemoryLane, purpose: str) -> list[int]:
    records = lane.producer.of(lane.cell.topics[purpose].name)  # type: ignore[index]
    return [read_meta(record["headers"]).position for record in records]


def begun(sender: MemorySender) -> list[int]:
    return [token.meta.position for token in sender.begun]


def test_message_set_aside_takes_the_partition_of_its_key(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock)
    lane.take(message(1, key=b"a", position=position_of(1, 3, 9)))
    work.poll()
    sender.answer(500)
    work.poll()
    (record,) = lane.producer.of(lane.cell.topics["retry-out"].name)
    assert (record["key"], "partition" in record) == (b"a", False)
    work.close()


def test_one_message_of_a_key_is_sent_at_a_time_and_other_keys_continue(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock)
    lane.take(message(1, key=b"a"), message(2, key=b"a"), message(3, key=b"b"), message(4))
    work.poll()
    assert sorted(begun(sender)) == [1, 3, 4]
    sender.answer(204, count=1)
    work.poll()
    work.poll()
    assert sorted(begun(sender)) == [2, 3, 4]
    work.close()


def test_failed_message_and_all_followers_of_its_key_are_set_aside_behind_a_block_record(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock)
    lane.take(message(1, key=b"a"), message(2, key=b"a"), message(3, key=b"b"))
    work.poll()
    sender.answer(503, count=1)
    work.poll()
    lane.take(message(4, key=b"a"))
    for _ in range(4):
        work.poll()
    assert positions(lane, "retry-out") == [1, 2, 4], "in their order"
    assert not lane.producer.of(lane.cell.topics["retry-in"].name)
    topics = [name for name, _, _ in lane.producer.sent]
    assert topics[:2] == [lane.cell.topics["blocked"].name, lane.cell.topics["retry-out"].name]
    assert lane.unsettled() == 4
    sender.answer(204)
    work.poll()
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "parked", "1"): 3, (NODE, "released", "1"): 3, (NODE, "delivered", ""): 1}
    work.close()


def test_one_of_two_stored_records_is_not_enough_to_settle(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock)
    lane.take(message(1, key=b"a"))
    work.poll()
    sender.answer(503)
    work.poll()
    work.on_delivery(lane.producer.waiting.pop())
    assert lane.unsettled() == 1
    lane.store()
    assert lane.unsettled() == 0
    work.close()


def test_retry_lane_publishes_the_end_of_a_key_whose_last_message_is_dead(tmp_path: Path, clock: Clock):
    """Without that record the other lanes would send nothing more of the key; the unit settles after both."""
    lane, work, sender = ready(tmp_path, clock, kind="transmit-retry")
    lane.take(message(1, key=b"a", attempt=1), message(2, key=b"a", attempt=1))
    work.poll()
    dead, blocked = lane.cell.topics["dead"].name, lane.cell.topics["blocked"].name
    sender.answer(400)
    work.poll()
    work.poll()
    assert (positions(lane, "dead"), lane.producer.of(blocked)) == ([1], []), "a message of the key still waits"
    sender.answer(400)
    work.poll()
    assert sorted(name for name, _, _ in lane.producer.sent) == sorted([dead, blocked, dead])
    for token in lane.producer.waiting[:-1]:
        work.on_delivery(token)
    lane.producer.waiting = lane.producer.waiting[-1:]
    assert lane.unsettled() == 1
    lane.store()
    assert lane.unsettled() == 0
    work.close()


def test_dead_message_of_the_main_lane_publishes_no_end_of_its_key(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock)
    lane.take(message(1, key=b"a"))
    work.poll()
    sender.answer(400)
    work.poll()
    assert [name for name, _, _ in lane.producer.sent] == [lane.cell.topics["dead"].name]
    work.close()


def test_retry_lane_waits_in_place_and_publishes_the_end_of_the_last_message(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock, kind="transmit-retry")
    lane.take(message(1, key=b"a", attempt=1), message(2, key=b"a", attempt=1))
    work.poll()
    sender.answer(503)
    work.poll()
    assert not lane.producer.of(lane.cell.topics["retry-in"].name)
    assert lane.unsettled() == 2
    for number in (1, 2):
        clock.advance(61)
        work.poll()
        assert begun(sender) == [number]
        sender.answer(204)
        work.poll()
        assert len(lane.producer.of(lane.cell.topics["blocked"].name)) == number - 1
    assert lane.unsettled() == 1, "not before the record of it is stored"
    lane.store()
    assert lane.unsettled() == 0
    work.close()


def test_key_continues_or_is_held_after_a_dead_letter_as_the_destination_says(tmp_path: Path, clock: Clock):
    for after_dead, end in (("go-on", "delivered"), ("hold", "held")):
        lane, work, sender = ready(tmp_path / after_dead, clock, after_dead=after_dead)
        lane.take(message(1, key=b"a"), message(2, key=b"a"))
        work.poll()
        sender.answer(422)
        work.poll()
        work.poll()
        sender.answer(204)
        work.poll()
        lane.store()
        detail = "1" if end == "held" else ""
        assert lane.filed() == {(NODE, "dead", "rejected"): 1, (NODE, end, detail): 1}
        lane.table.apply(ordered(after_dead=after_dead, version=2))
        lane.take(message(3, key=b"a"))
        work.poll()
        assert begun(sender) == [3], "a newer record ends the hold"
        work.close()


@pytest.mark.parametrize("kind", ["transmit", "transmit-retry"])
def test_key_is_also_held_after_a_poison_message(tmp_path: Path, clock: Clock, kind: Any):
    lane, work, sender = ready(tmp_path, clock, kind=kind, after_dead="hold")
    lane.condemn(message(1, key=b"a", attempt=1))
    lane.take(message(2, key=b"a", attempt=1))
    work.poll()
    lane.store()
    assert begun(sender) == []
    filed = lane.filed()
    assert filed[NODE, "dead", "crashes-lane"] == 1
    assert sum(count for (_, fact, _), count in filed.items() if fact == "held") == 1
    work.close()


def subsets(count: int) -> list[tuple[int, ...]]:
    return [some for size in range(count + 1) for some in itertools.combinations(range(count), size)]


@pytest.mark.parametrize("stored", subsets(3))
@pytest.mark.parametrize("kind", ["transmit", "transmit-retry"])
def test_crash_while_a_key_becomes_held_sends_no_later_message_of_it(
    tmp_path: Path, clock: Clock, kind: Any, stored: tuple[int, ...]
):
    """Any of the records of a dead letter and its held key may be stored when the lane dies."""
    lane, work, sender = ready(tmp_path / "first", clock, kind=kind, after_dead="hold")
    lane.take(message(1, key=b"a", attempt=1), message(2, key=b"a", attempt=1))
    work.poll()
    sender.answer(422)
    work._answers.take(*_answered(sender))
    produced = lane.producer.sent[:]
    for number in stored:
        if number < len(produced):
            work.on_delivery(produced[number][1])
    committed = lane.windows[0].prefix
    work.close()

    after, work, sender = opened(tmp_path / "second", ordered(after_dead="hold"), kind=kind)
    for number, (topic, _, record) in enumerate(produced):
        if number in stored and topic == lane.cell.topics["blocked"].name:
            work._order._reader.put_raw(record["key"], record["value"])
    after.take(*(message(n, key=b"a", attempt=1) for n in (1, 2) if n >= committed))
    sent = []
    for _ in range(4):
        sent += begun(sender)
        sender.answer(422)
        clock.advance(2)
        work.poll()
    work.close()
    assert 2 not in sent, f"{committed} was committed, and the key is not known as held"


def _answered(sender: MemorySender) -> tuple[Any, Any, float]:
    (answer,) = sender.poll(0)
    return answer.token, answer, 0.0


def test_newly_assigned_partition_waits_until_its_blocked_keys_are_known(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, ordered())
    lane.take(message(1, key=b"a"), message(2))
    work.poll()
    assert begun(sender) == [2], "a message without a key does not wait"
    clock.advance(1.1)
    work.poll()
    work.poll()
    assert begun(sender) == [2, 1]
    work.close()


def test_message_whose_partition_is_lost_before_its_keys_are_known_is_sent_once_the_partition_returns(
    tmp_path: Path, clock: Clock
):
    """A lane that still counted it as under way would take the second reading for a repeat, and never send it."""
    lane, work, sender = opened(tmp_path, ordered())
    lane.take(message(1, key=b"a"))
    lane.lose(0)
    assert work.in_flight() == 0
    lane.ours.add(0)
    lane.take(message(1, key=b"a"))
    clock.advance(1.1)
    work.poll()
    work.poll()
    assert begun(sender) == [1]
    work.close()


def test_retry_lane_without_room_sends_messages_of_a_key_round_in_order(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dataplane.transmit.queues.ORDERED_ROOM", 1)
    lane, work, _sender = ready(tmp_path, clock, kind="transmit-retry")
    lane.take(*(message(n, key=b"a", attempt=1) for n in (1, 2, 3, 4)), message(5, key=b"b", attempt=1))
    work.poll()
    assert positions(lane, "retry-in") == [3, 4]
    assert work.in_flight() == 4, "one of them waits for its turn"
    work.close()


def test_retry_lane_that_only_waits_neither_spins_nor_delays_a_drain(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock, kind="transmit-retry")
    lane.take(message(1, key=b"a", attempt=1), message(2, key=b"a", attempt=1))
    work.poll()
    assert (work.in_flight(), work.poll_timeout_s()) == (1, 0.0)
    sender.answer(503)
    work.poll()
    assert (work.in_flight(), work.poll_timeout_s()) == (0, 0.1)
    assert lane.unsettled() == 2
    work.on_drain_timeout()
    lane.store()
    assert lane.unsettled() == 2, "left to the next lane, in order"
    work.close()


def test_busy_key_is_set_aside_before_it_fills_the_ack_window_of_others(tmp_path: Path, clock: Clock):
    lane, work, sender = ready(tmp_path, clock)
    lane.table.apply(destination("lake"))
    lane.take(*(message(n, key=b"a") for n in (1, 2, 3)), message(4, destination="lake"))
    work.poll()
    clock.advance(11)
    sender.answer(204)
    for _ in range(4):
        work.poll()
    assert positions(lane, "retry-out") == [2, 3]
    lane.store()
    assert lane.unsettled() == 0
    work.close()


class World:
    """A transmit and a retry lane over in-memory logs; each may die at any time and restart without memory."""

    def __init__(self, folder: Path, clock: Clock, chance: random.Random, deaths: float = 0.06) -> None:
        self._folder, self._clock, self._chance, self._deaths = folder, clock, chance, deaths
        self.egress = [message(n, key=chance.choice([b"a", b"b", b"c"]), position=n) for n in range(24)]
        self.retry_in: list[dict[str, Any]] = []
        self.retry_out: list[MemoryMessage] = []
        self.blocked: list[bytes] = []
        self.delivered: dict[bytes, set[int]] = {b"a": set(), b"b": set(), b"c": set()}
        self.born = 0
        self.first = Lane(self, "transmit", self.egress)
        self.again = Lane(self, "transmit-retry", self.retry_out)

    def open(self, kind: Any) -> tuple[MemoryLane, TransmitWork, MemorySender]:
        self.born += 1
        fields = {"retry": RetryPolicy(1, span_s=600_000), "concurrency": 64}
        return opened(self._folder / str(self.born), ordered(**fields), kind=kind)

    def step(self, health: float) -> None:
        lane = self._chance.choice([self.first, self.again])
        lane.go(self._chance, health)
        if self._chance.random() < self._deaths:
            lane.die(self._chance)
        self._clock.advance(self._chance.choice([0.05, 0.6, 5.0]))
        while self.retry_in and read_meta(self.retry_in[0]["headers"]).not_before_us <= self._clock.wall_us:
            self.append_retry(self.retry_in.pop(0))

    def append_retry(self, record: dict[str, Any]) -> None:
        """Append a record to the retry lane's topic, as a lane of first attempts or the retrier."""
        at = len(self.retry_out)
        self.retry_out.append(MemoryMessage(0, at, record["value"], record["headers"], record["key"]))

    def check(self, send: Any) -> None:
        """Check that every earlier message of the same key was delivered."""
        earlier = {m.offset() for m in self.egress if m.key() == send.key and m.offset() < send.meta.position}
        assert earlier <= self.delivered[send.key], (
            f"{send.meta.position} overtook {earlier - self.delivered[send.key]}"
        )


class Lane:
    """One lane, its input log and its progress."""

    def __init__(self, world: World, kind: Any, log: list[MemoryMessage]) -> None:
        self._world, self._kind, self._log = world, kind, log
        self._committed = self._heard = 0
        self._start()

    def _start(self) -> None:
        self._next, self._heard = self._committed, 0
        self.lane, self.work, self.sender = self._world.open(self._kind)
        self._checked = 0

    def die(self, chance: random.Random) -> None:
        """Restart the lane: only what is stored survives, without the memory of verdicts.

        Some records were stored although the lane died before their delivery reports.
        """
        self._publish(chance)
        self.work.close()
        self._start()

    def go(self, chance: random.Random, health: float) -> None:
        reader: MemorySignals = self.work._order._reader
        for value in self._world.blocked[self._heard :]:
            reader.put_raw(b"", value)
        self._heard = len(self._world.blocked)
        count = chance.randint(0, 4)
        some = self._log[self._next : self._next + count]
        self._next += len(some)
        self.lane.take(*some)
        self.work.poll()
        for token in self.sender.begun[self._checked :]:
            self._world.check(token)
        for token in list(self.sender.begun):
            if chance.random() < 0.7:
                self._end(token, 204 if chance.random() < health else 503)
        self._checked = len(self.sender.begun)
        self.work.poll()
        for token in self.sender.begun[self._checked :]:
            self._world.check(token)
        self._checked = len(self.sender.begun)
        if chance.random() < 0.8:
            self._store(chance)

    def _end(self, token: Any, status: int) -> None:
        others = [one for one in self.sender.begun if one is not token]
        self.sender.begun = [token]
        self.sender.answer(status)
        self.sender.begun = others
        if status == 204:
            self._world.delivered[token.key].add(token.meta.position)

    def _store(self, chance: random.Random) -> None:
        """Store some of the produced records, deliver their reports, then commit the prefix."""
        for token in self._publish(chance):
            self.work.on_delivery(token)
        if 0 in self.lane.windows:
            self._committed = self.lane.windows[0].prefix

    def _publish(self, chance: random.Random) -> list[Any]:
        """Store the first records of each topic, or all of them; return their tokens."""
        topics, producer = self.lane.cell.topics, self.lane.producer
        counts: dict[str, int] = {}
        tokens, left = [], []
        for topic, token, record in producer.sent:
            count = counts.setdefault(topic, chance.choice([0, 1, 2, 99, 99, 99]))
            counts[topic] = count - 1
            if count <= 0:
                left.append((topic, token, record))
                continue
            tokens.append(token)
            if topic == topics["blocked"].name:
                self._world.blocked.append(record["value"])
            elif topic == topics["retry-out"].name:
                self._world.append_retry(record)
            elif topic == topics["retry-in"].name:
                self._world.retry_in.append(record)
            else:
                assert topic in (topics["signals"].name, topics["attempts"].name), topic
        producer.sent[:] = left
        producer.waiting = [token for _, token, _ in left]
        return tokens


def run(world: World) -> None:
    """Let the destination fail, then recover, until all messages are delivered."""
    for _ in range(150):
        world.step(health=0.5)
    everything: Callable[[], bool] = lambda: sum(map(len, world.delivered.values())) == len(world.egress)  # noqa: E731
    for _ in range(3_000):
        if everything():
            break
        world.step(health=1.0)
    for lane in (world.first, world.again):
        lane.work.close()
    assert everything(), "all messages are delivered in the end"


@pytest.mark.parametrize("seed", range(40))
def test_no_message_overtakes_an_earlier_one_of_its_key_whatever_fails_or_crashes(
    tmp_path: Path, clock: Clock, seed: int
):
    run(World(tmp_path, clock, random.Random(seed)))


@pytest.mark.parametrize("seed", range(20))
def test_no_message_overtakes_another_where_a_retry_lane_lacks_room(
    tmp_path: Path, clock: Clock, seed: int, monkeypatch: pytest.MonkeyPatch
):
    """Without crashes: the lane knows only in memory which messages of a key are in the retrier."""
    monkeypatch.setattr("dataplane.transmit.queues.ORDERED_ROOM", 2)
    run(World(tmp_path, clock, random.Random(seed), deaths=0.0))
