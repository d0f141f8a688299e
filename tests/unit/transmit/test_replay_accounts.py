"""Originals and copies pass the same lanes, which are killed: each unit is delivered at most once, and counted once.

A transmit lane, the retrier and the retry lane run over in-memory logs, and the ledger merges their audit records. A
kill loses everything since the last stored record; the next lane on the host continues from the committed offsets.
"""

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from msgspec import Struct, field

from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, OffsetMark
from dataplane.ledger.bins import SETTLED, Bin, BucketAccount
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, Fact, FactBook, FactKey
from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import position_of
from dataplane.names import INPUTS_OF, LaneKind, transform_node
from dataplane.retrier import low_watermarks
from dataplane.retrier import work as retrier_module
from dataplane.retrier.work import RetrierWork
from dataplane.spec import RetryPolicy
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.work import TransmitWork
from tests.support.ledger_checks import MergedReports
from tests.support.memory_lane import MemoryLane, MemoryMessage, message
from tests.support.memory_topics import MemorySignalReader, MemoryTopics
from tests.support.transmitting import KEY, Clock, MemorySender, destination, without_kafka

REPLAY: Final = "replay_1"
BUCKET, REPLAYED_AT = 29_833_333, 29_840_000
UNITS: Final = 24
STEPS: Final = 1_200
KINDS: Final[tuple[LaneKind, ...]] = ("transmit", "retrier", "transmit-retry")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    monkeypatch.setattr(retrier_module, "SignalReader", MemorySignalReader)
    monkeypatch.setattr(low_watermarks, "place_reader", MemoryTopics().reader)
    return Clock(monkeypatch)


class World(Struct):
    """Logs by topic, the ledger, and what the receiver got: the number of requests that it accepted, by unit."""

    folder: Path
    clock: Clock
    chance: random.Random
    record: DestinationRecord
    reports: MergedReports
    logs: dict[str, list[MemoryMessage]] = field(default_factory=dict)
    blocked: list[bytes] = field(default_factory=list)
    accepted: Counter[tuple[str, int]] = field(default_factory=Counter)

    def append(self, topic: str, record: dict[str, Any]) -> None:
        """Append a record; all partitions of a topic are one here."""
        log = self.logs.setdefault(topic, [])
        stored = MemoryMessage(0, len(log), record["value"], record["headers"], record.get("key"), topic)
        stored.at_ms = self.clock.wall_us // 1_000
        log.append(stored)

    def marks(self) -> list[OffsetMark]:
        """Return the highest offset of each log."""
        return [OffsetMark(topic, 0, len(log) - 1) for topic, log in self.logs.items() if log]


class KilledLane:
    """One lane and its committed offsets, which survive a kill; so do the files of its host."""

    def __init__(self, world: World, kind: LaneKind) -> None:
        self._world, self._kind = world, kind
        self._committed: dict[str, int] = {}
        self._start()

    def _start(self) -> None:
        self.lane = MemoryLane(self._kind, self._world.folder, KEY)
        self.lane.table.apply(self._world.record)
        self.work = self.lane.work = RetrierWork(self.lane) if self._kind == "retrier" else TransmitWork(self.lane)
        self._next = dict(self._committed)
        self._known_blocks = 0

    def kill(self) -> None:
        """Restart from the committed offsets: requests in flight, unsent records and unreported facts are lost."""
        self.work.close()
        self._start()

    def step(self, accepts: float) -> None:
        """Read some messages, answer some requests, and perhaps store the records and run a checkpoint."""
        chance = self._world.chance
        self.lane.table.apply(self._world.record)
        for topic in self.lane.slots.topics:
            first = self._next.get(topic, 0)
            some = self._world.logs.get(topic, [])[first : first + chance.randint(0, 5)]
            self._next[topic] = first + len(some)
            self.lane.take(*some)
        self._learn_blocks()
        self.work.poll()
        if isinstance(self.work, TransmitWork):
            self._answer(accepts)
            self.work.poll()
        if chance.random() < 0.7:
            self._store()
        if chance.random() < 0.5:
            self._checkpoint()

    def _learn_blocks(self) -> None:
        if isinstance(self.work, TransmitWork):
            for value in self._world.blocked[self._known_blocks :]:
                self.work._order._reader.put_raw(b"", value)
            self._known_blocks = len(self._world.blocked)

    def _answer(self, accepts: float) -> None:
        sender: MemorySender = self.lane.work._sender
        chance = self._world.chance
        for token in list(sender.begun):
            if chance.random() < 0.3:
                continue  # still in flight
            status = 204 if chance.random() < accepts else chance.choice([400, 503, 503])
            others = [one for one in sender.begun if one is not token]
            sender.begun = [token]
            sender.answer(status)
            sender.begun = others
            if status == 204:
                self._world.accepted[token.meta.account, token.meta.position] += 1

    def _store(self) -> None:
        """Store all records that were produced, and deliver their reports."""
        for topic, _, record in self.lane.producer.sent:
            if topic == self.lane.cell.topics["blocked"].name:
                self._world.blocked.append(record["value"])
            elif record.get("headers"):
                self._world.append(topic, record)
        self.lane.producer.sent.clear()
        self.lane.store()

    def _checkpoint(self) -> None:
        """Report the facts so far, then commit the offsets that they cover."""
        found = {self.lane.slots.place(slot)[0]: window.prefix for slot, window in self.lane.windows.items()}
        inputs = [OffsetMark(topic, 0, offset) for topic, offset in found.items()]
        about = (AUDIT_VERSION, "c1", f"{self._kind}-0", self._kind, 0)
        self._world.reports.add(AuditRecord(*about, inputs, self._world.marks(), self.lane.facts.take(), []))
        self._committed |= found

    def finish(self) -> None:
        """Store and report everything."""
        self._store()
        self._checkpoint()
        self.work.close()


def in_state(state: Literal["active", "paused"], version: int, *, is_ordered: bool) -> DestinationRecord:
    fields: dict[str, Any] = {"ordered": is_ordered, "concurrency": 64, "retry": RetryPolicy(1, span_s=600_000)}
    return destination(version=version, state=state, **fields)


def started(folder: Path, clock: Clock, seed: int, *, is_ordered: bool) -> World:
    """Return a world whose egress has every unit twice, as process and a replay produced it, in a random order."""
    topics = MemoryLane("transmit", folder).cell.topics
    record = in_state("active", 1, is_ordered=is_ordered)
    world = World(folder, clock, random.Random(seed), record, MergedReports(topics))
    facts = FactBook()
    units = [position_of(1, 0, number) for number in range(UNITS)]
    for account, bucket in (("p", BUCKET), (REPLAY, REPLAYED_AT)):
        for node, fact, detail in ((INGEST, Fact.SENT, ACKED), (PROCESS, Fact.SENT, ""), (_TRANSFORM, Fact.SENT, "")):
            facts.extend(account, bucket, FactKey(node, fact, detail), units)
    originals: list[Any] = [(number, {}) for number in range(UNITS)]
    copies = [(number, {"replay": REPLAY, "bucket": REPLAYED_AT}) for number in range(UNITS)]
    for number, changes in merged(world.chance, originals, copies):
        key = world.chance.choice([b"crm\0a", b"crm\0b"])
        about = {"id": f"id-{number}", "position": units[number], "bucket": BUCKET}
        made = message(0, key=key, **about | changes)
        world.append(topics["egress"].name, {"value": b"{}", "headers": made.headers(), "key": key})
    about_driver = (AUDIT_VERSION, "c1", "replay", "driver", 0)
    world.reports.add(AuditRecord(*about_driver, [], world.marks(), facts.sets(), []))
    return world


_TRANSFORM: Final = transform_node("crm")


def merged(chance: random.Random, *lists: list[Any]) -> Iterable[Any]:
    """Yield the elements of all lists, those of each list in their order."""
    left = [list(reversed(one)) for one in lists]
    while any(left):
        yield chance.choice([one for one in left if one]).pop()


def run(world: World, *, kills: float) -> None:
    """Let the destination fail, be paused and recover, until every message has ended."""
    lanes = [KilledLane(world, kind) for kind in KINDS]
    assert {topic for kind in KINDS for topic in INPUTS_OF[kind]} <= set(lanes[0].lane.cell.topics)
    version = 1
    for number in range(STEPS):
        lane = world.chance.choice(lanes)
        lane.step(accepts=0.6 if number < 150 else 1.0)
        if world.chance.random() < kills:
            lane.kill()
        if number in (20, 40, 60, 80, 150):  # a newer record also ends a suspension
            version += 1
            state: Literal["active", "paused"] = "paused" if number in (20, 60) else "active"
            world.record = in_state(state, version, is_ordered=world.record.to.ordered)
        world.clock.advance(world.chance.choice([0.05, 1.1, 30.0]))
    for lane in lanes:
        lane.finish()


def bins(account: BucketAccount) -> dict[int, list[Bin]]:
    """Return the bins of each unit."""
    found: dict[int, list[Bin]] = {position_of(1, 0, number): [] for number in range(UNITS)}
    for where in (account.upstream, account.destinations["crm"]):
        for name, units in where.items():
            for position, _ in units:
                found[position].append(name)
    return found


@pytest.mark.parametrize("is_ordered", [False, True], ids=["unordered", "ordered"])
@pytest.mark.parametrize("seed", range(12))
def test_every_copy_and_every_original_ends_once_in_its_own_account_whatever_is_killed(
    tmp_path: Path, clock: Clock, seed: int, is_ordered: bool
):
    world = started(tmp_path, clock, seed, is_ordered=is_ordered)
    run(world, kills=0.05)
    accounts = {name: world.reports.accounts(name) for name in ("p", REPLAY)}
    assert {name: list(found) for name, found in accounts.items()} == {"p": [BUCKET], REPLAY: [REPLAYED_AT]}
    originals, copies = bins(accounts["p"][BUCKET]), bins(accounts[REPLAY][REPLAYED_AT])
    for name, found in (("p", originals), (REPLAY, copies)):
        assert all(len(one) == 1 for one in found.values()), (name, found)
        delivered = {position for position, one in found.items() if one == [Bin.DELIVERED]}
        assert {position for account, position in world.accepted if account == name} == delivered
    assert set(world.accepted.values()) == {1}, "sent once each, the original and the copy"
    assert {one for (one,) in originals.values()} <= {*SETTLED, Bin.HELD}
    assert {one for (one,) in copies.values()} <= set(SETTLED)


def test_kills_pauses_and_failures_of_these_runs_reach_every_outcome(tmp_path: Path, clock: Clock):
    """Otherwise the test above shows little."""
    seen: dict[str, set[Bin]] = {"p": set(), REPLAY: set()}
    for seed in range(4):
        world = started(tmp_path / str(seed), clock, seed, is_ordered=False)
        run(world, kills=0.05)
        for name, bucket in (("p", BUCKET), (REPLAY, REPLAYED_AT)):
            seen[name] |= {one for (one,) in bins(world.reports.accounts(name)[bucket]).values()}
        stored = [read_meta(one.headers()) for topic in ("dead", "held") for one in world.logs.get(_name(topic), [])]
        assert stored
        assert not any(meta.replay for meta in stored), "a dead or cancelled copy is in no topic"
        retried = [read_meta(one.headers()) for one in world.logs[_name("retry-out")]]
        assert {meta.replay for meta in retried} == {"", REPLAY}
    assert seen == {"p": {Bin.DELIVERED, Bin.DEAD, Bin.HELD}, REPLAY: {Bin.DELIVERED, Bin.DEAD, Bin.CANCELLED}}


def _name(purpose: str) -> str:
    return f"penstock.c1.{purpose}.g1"
