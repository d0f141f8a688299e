"""One contract over the real lane (on in-memory topics) and the in-memory lane that tests of works use."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka import KafkaError

from dataplane.ledger.deadletter import CAUSE_HEADER
from dataplane.ledger.meta import META_HEADER, Headers
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.runtime.lanes.context import LaneContext, LaneError, LaneIdentity
from dataplane.runtime.lanes.lane import Lane
from dataplane.runtime.producers.tracked_producer import RecordTooLargeError
from tests.support.failing_lanes import World, in_memory
from tests.support.memory_lane import MemoryLane, MemoryMessage, message

SLOT = 0
UNREADABLE: Headers = [(META_HEADER, b"\xff")]


class RecordingWork:
    """Work that records the lane's calls and settles nothing."""

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        self.read: list[tuple[str, Headers]] = []
        self.delivered: list[Any] = []
        self.recalled: list[tuple[int, str]] = []
        lane.keep_notes(
            lambda slot, offset: f"{slot} to {offset}", lambda slot, text: self.recalled.append((slot, text))
        )

    def process(self, messages: Sequence[Any]) -> None:
        self.read += [(meta.id, headers) for _, meta, headers in self._lane.read_all(messages)]

    def on_delivery(self, token: Any) -> None:
        self.delivered.append(token)

    def on_revoked(self, slots: Iterable[int]) -> None: ...

    def dead_letter_poison(self, message: Any) -> None: ...

    def poll(self) -> None: ...

    def report(self) -> None: ...

    def on_drain_timeout(self) -> None: ...

    def close(self) -> None: ...

    def in_flight(self) -> int:
        return 0

    def backlog(self) -> int:
        return 0

    def poll_timeout_s(self) -> float:
        return 0.0


class Driver(Protocol):
    """A lane, and what its loop does step by step."""

    lane: LaneContext
    work: RecordingWork

    def deliver(self, *messages: MemoryMessage) -> None: ...

    def store(self) -> None: ...

    def commit(self) -> None: ...

    def lose(self) -> None: ...

    def dead(self) -> list[Headers]: ...

    def close(self) -> None: ...


class MemoryDriver:
    """The in-memory lane."""

    def __init__(self, var: Path) -> None:
        self.lane = self._lane = MemoryLane("process", var)
        self.work = self._lane.work = RecordingWork(self._lane)

    def deliver(self, *messages: MemoryMessage) -> None:
        self._lane.take(*messages)

    def store(self) -> None:
        self._lane.store()

    def commit(self) -> None:
        self._lane.checkpoint()
        self._lane.commit()

    def lose(self) -> None:
        self._lane.lose(SLOT)

    def dead(self) -> list[Headers]:
        return [record["headers"] for record in self._lane.producer.of(self._lane.cell.topics["dead"].name)]

    def close(self) -> None: ...


class RecordingWorld(World):
    """Topics of a process lane, without control records of pipes."""

    kind = "process"

    def fill(self) -> None:
        self.commits: list[tuple[int, int]] = []  # partition and offset

    def is_accounted(self, _meta: Any) -> bool:
        return True

    def committed(self, place: Any, offset: int, before: int) -> None:
        super().committed(place, offset, before)
        self.commits.append((place[1], offset))

    def evidence(self, _node: str, _fact: str) -> set[int] | None:
        return None


class RealDriver:
    """The real lane, one pass of its loop at a time."""

    def __init__(self, var: Path) -> None:
        self._world = RecordingWorld(var)
        self._patches = in_memory(self._world)
        self._patches.__enter__()
        identity = LaneIdentity("c1", "process", 1, 1, "run")
        self.lane = self.real = self._lane = Lane(identity, self._world.settings, RecordingWork)
        self.commits = self._world.commits
        assert isinstance(self._lane._work, RecordingWork)
        self.work = self._lane._work
        rebalance = self._lane._rebalance
        self._lane._consumer.subscribe(
            self._lane.slots.topics,
            on_assign=rebalance.assigned,
            on_revoke=rebalance.revoked,
            on_lost=rebalance.lost,
        )
        self._lane._checkpoint_due = float("inf")  # `commit` alone makes checkpoints
        self._lane._pass()

    def deliver(self, *messages: MemoryMessage) -> None:
        topic, partition = self._lane.slots.place(SLOT)
        for one in messages:
            self._world.kafka.append(topic, one.value(), one.headers(), one.key(), partition)
        # A pass stores records as well, which `store` must do: so these are its parts up to the work.
        self._lane._hand_over(self._lane._fetch())

    def store(self) -> None:
        self._lane._collect(0.0)

    def commit(self) -> None:
        self._lane._freeze()
        self._lane._collect(0.0, commit_now=True)

    def lose(self) -> None:
        self._lane._rebalance.lost(self._lane._consumer, [self._lane.slots.at(SLOT)])

    def dead(self) -> list[Headers]:
        return [one.headers() for one in self._world.kafka.logs[self._lane.cell.topics["dead"].name, 0]]

    def close(self) -> None:
        self._lane._close()
        self._patches.__exit__(None, None, None)


def test_failed_commit_is_repeated_with_the_next_checkpoint(tmp_path: Path):
    with closing(RealDriver(tmp_path)) as driver:
        driver.deliver(message(0))
        driver.lane.settle(SLOT, 0)
        driver.commit()
        commits, lane = driver.commits, driver.real
        assert commits == [(0, 1)]
        place = lane.slots.at(SLOT)
        lane._committed(None, [place])
        driver.commit()
        assert len(commits) == 1, "a stored commit is not repeated"
        lane._committed(KafkaError(KafkaError.REQUEST_TIMED_OUT), [place])
        driver.commit()
        assert commits == [(0, 1), (0, 1)]


class SlowWait:
    """Lets time pass in the lane's next call of the consumer, or in a callback during it."""

    def __init__(self, lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lane, self._patch = lane, monkeypatch
        self._advanced_s, clock = 0.0, time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: clock() + self._advanced_s)

    def passes(self, seconds: float, call: str = "poll", *, in_callback: bool = False) -> None:
        """Let the call take so long."""
        answer = getattr(self._lane._consumer, call)

        def waiting(*arguments: Any) -> Any:
            if in_callback:
                self._patch.setattr(self._lane._rebalance, "_finish_work", lambda: self._advance(seconds))
                other = [self._lane.slots.at(SLOT + 1)]
                self._lane._rebalance.assigned(self._lane._consumer, other)
                self._lane._rebalance.revoked(self._lane._consumer, other)
            else:
                self._advance(seconds)
            self._patch.setattr(self._lane._consumer, call, answer)
            return answer(*arguments)

        self._patch.setattr(self._lane._consumer, call, waiting)

    def _advance(self, seconds: float) -> None:
        self._advanced_s += seconds


def test_lane_that_was_suspended_in_its_wait_hands_over_nothing_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with closing(RealDriver(tmp_path)) as driver:
        SlowWait(driver.real, monkeypatch).passes(7)
        with pytest.raises(LaneError, match="stalled for 7 s"):
            driver.deliver(message(0))
        assert driver.work.read == []


def test_lane_that_was_suspended_in_a_callback_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with closing(RealDriver(tmp_path)) as driver:
        SlowWait(driver.real, monkeypatch).passes(60, in_callback=True)
        with pytest.raises(LaneError, match="stalled for 49 s"):
            driver.deliver(message(0))


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_slow_rebalance_callback_is_no_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str):
    with closing(RealDriver(tmp_path)) as driver:
        SlowWait(driver.real, monkeypatch).passes(10, call, in_callback=True)
        driver.deliver(message(0))
        driver.deliver(message(1))
        assert len(driver.work.read) == 2


@pytest.fixture(params=[MemoryDriver, RealDriver])
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    with closing(request.param(tmp_path)) as made:
        yield made


def ids(driver: Driver) -> list[str]:
    return [name for name, _ in driver.work.read]


def test_messages_are_read_in_order_with_their_meta_header_first(driver: Driver):
    driver.deliver(message(0), message(1))
    assert ids(driver) == ["id-0-0", "id-0-1"]
    assert all(headers[0][0] == META_HEADER for _, headers in driver.work.read)


def test_window_moves_to_the_first_unsettled_message(driver: Driver):
    driver.deliver(message(0), message(1), message(2))
    window = driver.lane.windows[SLOT]
    driver.lane.settle(SLOT, 1)
    assert (window.prefix, window.unsettled) == (0, 2)
    driver.lane.settle_all(SLOT, [0])
    assert (window.prefix, window.unsettled) == (2, 1)


def test_settling_a_partition_that_is_not_owned_is_ignored(driver: Driver):
    driver.deliver(message(0))
    driver.lose()
    driver.lane.settle(SLOT, 0)
    driver.lane.settle_all(SLOT, [0])
    assert SLOT not in driver.lane.windows


def test_lost_partition_is_not_owned_and_nothing_may_be_sent(driver: Driver):
    driver.deliver(message(0))
    assert driver.lane.owns(SLOT)
    assert driver.lane.may_send(SLOT)
    driver.lose()
    assert not driver.lane.owns(SLOT)
    assert not driver.lane.may_send(SLOT)


def test_token_is_returned_once_its_record_is_stored(driver: Driver):
    driver.lane.producer.send("out", "token", value=b"{}", headers=[])
    assert driver.lane.producer.in_flight == 1
    assert driver.work.delivered == []
    driver.store()
    assert driver.work.delivered == ["token"]
    assert driver.lane.producer.in_flight == 0


def test_group_returns_its_token_once_after_its_last_record(driver: Driver):
    group = driver.lane.producer.begin_group("out", "group")
    group.send(b"1", None, 0, [])
    group.send(b"2", None, 0, [])
    group.close()
    driver.store()
    assert driver.work.delivered == ["group"]


def test_record_over_the_limit_is_refused_and_counts_as_not_sent(driver: Driver):
    with pytest.raises(RecordTooLargeError):
        driver.lane.producer.send("out", "large", value=bytes(CLIENT_MAX_BYTES), headers=[])
    assert driver.lane.producer.in_flight == 0


def test_message_with_an_unreadable_envelope_is_dead_lettered_and_settled_by_the_lane(driver: Driver):
    driver.deliver(MemoryMessage(0, 0, b"{}", UNREADABLE), message(1))
    assert ids(driver) == ["id-0-1"]
    assert driver.lane.windows[SLOT].unsettled == 2
    driver.store()
    assert [dict(headers)[CAUSE_HEADER] for headers in driver.dead()] == [b"envelope"]
    assert driver.work.delivered == [], "the token is the lane's own"
    assert driver.lane.windows[SLOT].prefix == 1


def test_note_is_committed_with_the_offset(driver: Driver):
    driver.deliver(message(0))
    driver.lane.settle(SLOT, 0)
    assert driver.lane.committed_note(SLOT) == ""
    driver.commit()
    assert driver.lane.committed_note(SLOT) == "0 to 1"
    assert driver.lane.audits.begun >= driver.lane.audits.stored
