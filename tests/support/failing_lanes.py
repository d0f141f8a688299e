"""Whole lanes in memory that fail at a step of their code, and the invariants that must hold then.

Each world gives one kind of lane messages with several outcomes and defines the facts of each outcome. Lanes run
one after the other until one drains, each as if its process were new.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec
import pytest
from confluent_kafka import KafkaException
from pyroaring import BitMap64

from dataplane.ledger.audit import AuditRecord
from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta, read_meta
from dataplane.ledger.units import parse_position, position_of
from dataplane.names import (
    DELAYS_S,
    INPUTS_OF,
    LANE_KINDS,
    PURPOSES,
    WIRE_VERSION,
    LaneKind,
    Purpose,
    cell_topic,
    output_topic,
)
from dataplane.process.work import ProcessWork
from dataplane.retrier import work as retrier_module
from dataplane.retrier.retry_messages import LEAVE_HEADER
from dataplane.retrier.work import RetrierWork
from dataplane.runtime.lanes import checkpoint
from dataplane.runtime.lanes import lane as lane_module
from dataplane.runtime.lanes.context import LaneContext, LaneIdentity, LaneWork
from dataplane.runtime.lanes.lane import Lane
from dataplane.runtime.lookups import Lookups
from dataplane.runtime.settings import settings_from
from dataplane.spec import HttpDestination, RetryPolicy, TopicDestination, parse_pipe_spec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, DestinationRecord, PipeRecord, PlanRecord, StopRecord, TopicRecord
from dataplane.transmit import key_order
from dataplane.transmit import work as transmit_module
from dataplane.transmit.destinations import breaker_gossip
from dataplane.transmit.http.sender import HttpRequest, HttpResponse
from dataplane.transmit.records import writer
from dataplane.transmit.work import TransmitWork
from localbox.settings import ROOT
from tests.support.memory_kafka import MemoryGroupConsumer, MemoryKafka, MemoryKafkaProducer, MemoryTopicReader, Place
from tests.support.memory_topics import MemorySignalReader
from tests.support.steps import Step
from tests.support.transmitting import KEY, TOKEN, MemorySignals

ROOM: Final = f"{ROOT / 'dataplane'}/"
MINUTE: Final = 29_833_333
EACH: Final = 4
MOST_PASSES: Final = 2_000  # of a lane's loop: a lane that drains at all does so long before
REPORT_BYTES: Final = 700  # so that checkpoints have several audit records


class World:
    """One kind of lane, its topics, and the invariants that are checked whenever something is stored."""

    kind: LaneKind

    def __init__(self, var: Path) -> None:
        self.settings = msgspec.structs.replace(
            settings_from({"PENSTOCK_VAR": str(var), "PENSTOCK_FERNET_KEYS": KEY, "PENSTOCK_FIELDS": "names"}),
            checkpoint_ms=0,
        )
        self.kafka = MemoryKafka(self)
        self.facts: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self.broken: list[str] = []  # violated invariants; recorded, as a lane may catch what is raised in it
        self.passes = 0
        self._runs = 0
        self._topics = {purpose: TopicRecord(cell_topic("c1", purpose, 1), 1, 1, "") for purpose in PURPOSES}
        self.fill()

    # -- what differs between kinds --------------------------------------------------------------------------------

    def fill(self) -> None:
        """Put messages on the lane's input."""
        raise NotImplementedError

    def make_work(self, lane: LaneContext) -> LaneWork:
        """Return the work of this kind, without sockets."""
        raise NotImplementedError

    def records(self) -> list[Any]:
        """Return the control records besides the cell's."""
        return []

    def is_accounted(self, meta: MessageMeta) -> bool:
        """Return True if the ledger has a message's outcome."""
        raise NotImplementedError

    def evidence(self, node: str, fact: str) -> set[int] | None:
        """Return the positions for which topics justify a fact; None if any position may have it."""
        raise NotImplementedError

    def check_done(self, failure: str = "") -> None:
        """Assert that every message has its outcome, although a lane had this failure (tests.support.failures)."""
        raise NotImplementedError

    # -- the promise -----------------------------------------------------------------------------------------------

    def audited(self, audit: AuditRecord) -> None:
        for fact in audit.facts:
            self.facts[fact.node, fact.fact] |= set(BitMap64.deserialize(fact.positions))
            proof = self.evidence(fact.node, fact.fact)
            if proof is not None and not self.facts[fact.node, fact.fact] <= proof:
                self.broken.append(f"untrue: {fact.fact} at {fact.node}")
        for mark in audit.inputs:
            self._check_accounted((mark.topic, mark.partition), mark.offset, "reported as settled")

    def committed(self, place: Place, offset: int, before: int) -> None:
        if offset < before:
            self.broken.append(f"{place} went back from {before} to {offset}")
        self._check_accounted(place, offset, "committed")

    def _check_accounted(self, place: Place, offset: int, what: str) -> None:
        for message in self.kafka.logs[place][:offset]:
            meta = read_meta(message.headers())
            if self.kind == "process":
                meta.position = position_of(1, 0, message.offset())
            if not self.is_accounted(meta):
                self.broken.append(f"{what} up to {offset}, and {meta.id} is in no book")

    # -- lanes -----------------------------------------------------------------------------------------------------

    def run_lane(self, fault: Callable[[FrameType, str, Any], Any] | None = None) -> str:
        """Run one lane to its end, traced by `fault`; return its outcome, or the name of the exception."""
        self._runs += 1
        self.passes = 0
        lane = Lane(LaneIdentity("c1", self.kind, 1, 1, f"run-{self._runs}"), self.settings, self.make_work)
        tracer = sys.gettrace()  # of a measurement of coverage
        sys.settrace(fault)
        try:
            return lane.run()
        except (MemoryError, RuntimeError, OSError, KafkaException) as exc:
            return type(exc).__name__
        finally:
            sys.settrace(tracer)

    def control(self) -> "MemoryControl":
        return MemoryControl(self)

    def cell(self) -> CellRecord:
        return CellRecord("c1", 1, 1, dict.fromkeys(LANE_KINDS, 2), self._topics)

    def stop(self) -> StopRecord:
        """Return the record that asks the running lane to drain."""
        return StopRecord("c1", self._runs, f"run-{self._runs}")

    def is_over(self) -> bool:
        """Return True when the lane is to drain."""
        self.passes += 1
        assert self.passes < MOST_PASSES, "the lane does not end"
        return self.kafka.is_consumed([self.name(purpose) for purpose in INPUTS_OF[self.kind]])

    # -- topics ----------------------------------------------------------------------------------------------------

    def name(self, purpose: Purpose) -> str:
        return self._topics[purpose].name

    def put(self, purpose: Purpose, number: int, *, key: bytes | None = None, more: Headers | None = None, **of: Any):
        """Put a message on a topic as the previous hop leaves it."""
        fields = {"source": "shop", "revision": 1, "pipe": "p", "bucket": MINUTE, "position": position_of(1, 0, number)}
        at_us = MINUTE * 60_000_000
        body = of.pop("body", b'{"n":1}')
        meta = MessageMeta(**{"version": WIRE_VERSION, "id": f"id-{number}", **fields, **of, **_times(at_us)})
        headers: Headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json"), *(more or [])]
        self.kafka.append(self.name(purpose), body, headers, key)

    def on(self, *purposes: Purpose, destination: str = "") -> set[int]:
        """Return the positions of the messages on topics, of one destination if named."""
        logs = [log for (topic, _), log in self.kafka.logs.items() if topic in map(self.name, purposes)]
        metas = [read_meta(message.headers()) for log in logs for message in log]
        return {meta.position for meta in metas if meta.destination == destination or not destination}


def _times(at_us: int) -> dict[str, int]:
    return {"event_time_us": at_us, "ingest_time_us": at_us}


class MemoryControl:
    """Control reader whose table holds the world's records."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.table = ControlTable()
        for record in (world.cell(), *world.records()):
            self.table.apply(record)

    def catch_up(self, _timeout_s: float) -> bool:
        return True

    def refresh(self) -> int:
        if self._world.is_over():
            self.table.apply(self._world.stop())
        return 0

    def close(self) -> None:
        """Do nothing: nothing is open."""


class ProcessWorld(World):
    """Messages that pass, die in a step, or are filtered by a route."""

    kind = "process"

    def fill(self) -> None:
        bodies = [b'{"n":1,"to":"crm"}', b'{"n":"x"}', b'{"n":1,"to":"nobody"}']
        for number in range(EACH * len(bodies)):
            body = bodies[number % len(bodies)]
            self.put("ingest", number, body=body, key=b"p\0k" if number % 2 else None, position=0)

    def records(self) -> list[Any]:
        spec = {
            "sources": {"shop": {}},
            "normalize": [{"op": "cast", "path": "n", "to": "int"}],
            "routes": {"rules": [{"when": 'body.to == "crm"', "to": ["crm"]}]},
            "destinations": {"crm": {"type": "http", "url": "http://crm.example/"}},
        }
        pipe = PipeRecord("p", 1, "t", "rig", "c1", "active", [(1, 100)])
        return [pipe, PlanRecord("p", 1, parse_pipe_spec(spec), 1)]

    def make_work(self, lane: LaneContext) -> LaneWork:
        return ProcessWork(lane, Lookups(self.settings.var / "lookups", files=lane.files))

    def is_accounted(self, meta: MessageMeta) -> bool:
        end = [("transform:crm", Fact.SENT), ("normalize", Fact.DEAD), ("route", Fact.FILTERED)]
        return any(meta.position in self.facts[one] for one in end) and meta.position in self.facts["ingest", Fact.SENT]

    def evidence(self, node: str, fact: str) -> set[int] | None:
        return {("transform:crm", "sent"): self.on("egress"), ("normalize", "dead"): self.on("dead")}.get((node, fact))

    def check_done(self, _failure: str = "") -> None:
        positions = {position_of(1, 0, number) for number in range(EACH * 3)}
        assert self.facts["ingest", Fact.SENT] == positions
        assert self.on("egress") == self.facts["transform:crm", Fact.SENT] == set(sorted(positions)[0::3])
        assert self.on("dead") == self.facts["normalize", Fact.DEAD] == set(sorted(positions)[1::3])
        assert self.facts["route", Fact.FILTERED] == set(sorted(positions)[2::3])


class AnsweringSender:
    """Sender that answers each request by its destination's name, at the next poll."""

    answers: Final = {"good": 204, "bad": 400, "down": 503, "gone": 410, "keyed": 204, "strict": 400}

    def __init__(self, got: defaultdict[str, list[int]]) -> None:
        self._got = got
        self._begun: list[Any] = []

    room = 1_000

    @property
    def active(self) -> int:
        return len(self._begun)

    def begin(self, post: HttpRequest) -> None:
        self._begun.append(post.token)

    def poll(self, _wait_s: float) -> Iterator[HttpResponse]:
        begun, self._begun = self._begun, []
        for token in begun:
            name = token.target.record.name
            self._got[name].append(token.meta.position)
            yield HttpResponse(token, self.answers[name], 0, "", "127.0.0.1", False, 1, 2, 3, 4, 5, b"", "")

    def cancel(self, wanted: Callable[[Any], bool]) -> list[Any]:
        cancelled = [token for token in self._begun if wanted(token)]
        self._begun = [token for token in self._begun if not wanted(token)]
        return cancelled

    def close(self) -> None:
        self._begun = []


class TransmitWorld(World):
    """Destinations that accept, refuse, fail, are gone, or are a topic; two keep order, one of them holds a key."""

    kind = "transmit"
    ends: Final[dict[str, tuple[Fact, Purpose | None]]] = {
        "good": (Fact.DELIVERED, None),
        "bad": (Fact.DEAD, "dead"),
        "down": (Fact.PARKED, "retry-in"),
        "gone": (Fact.HELD, "held"),
        "keyed": (Fact.DELIVERED, None),
        "feed": (Fact.DELIVERED, None),
    }

    def __init__(self, var: Path) -> None:
        self.got: defaultdict[str, list[int]] = defaultdict(list)
        super().__init__(var)

    def fill(self) -> None:
        names = [*self.ends, "strict"]
        for number in range(EACH * len(names)):
            name = names[number % len(names)]
            key = f"{name}\0k".encode() if name in ("keyed", "strict") else None
            self.put("egress", number, destination=name, key=key)

    def records(self) -> list[Any]:
        retry = RetryPolicy(local_tries=1)
        to = {name: HttpDestination(url=f"http://{name}.example/", retry=retry) for name in AnsweringSender.answers}
        for name, after in (("keyed", "go-on"), ("strict", "hold")):
            to[name] = msgspec.structs.replace(to[name], ordered=True, after_dead=after)
        records = [DestinationRecord("p", name, 1, "active", one, [TOKEN]) for name, one in to.items()]
        return [*records, DestinationRecord("p", "feed", 1, "active", TopicDestination(retry=retry), [])]

    def make_work(self, lane: LaneContext) -> LaneWork:
        return TransmitWork(lane)

    def is_accounted(self, meta: MessageMeta) -> bool:
        is_dead = meta.destination == "strict" and meta.position in self.facts["transmit:strict", Fact.DEAD]
        if is_dead and not self.kafka.logs[self.name("blocked"), 0]:
            self.broken.append("settled before its key was stored as held")
        ends = (Fact.DELIVERED, Fact.DEAD, Fact.PARKED, Fact.HELD)
        return any(meta.position in self.facts[f"transmit:{meta.destination}", fact] for fact in ends)

    def _end_instead(self, name: str, failure: str) -> str:
        """Return the fact with which a message of a destination may end because of a failure; "" if there is none.

        A bug concerns the message that hits it, so the lane goes on. A topic that Kafka refuses to write is retried
        later. After any other failure the lane ends, and the next one delivers the message.
        """
        if failure == "bug" and self.ends[name][0] != Fact.DEAD:
            return Fact.DEAD
        return Fact.PARKED if failure in ("kafka", "fatal") and name == "feed" else ""

    def evidence(self, node: str, fact: str) -> set[int] | None:
        name = node.partition(":")[2]
        if fact == Fact.DELIVERED:
            return self.written() if name == "feed" else set(self.got[name])
        topics: dict[str, Purpose] = {Fact.DEAD: "dead", Fact.PARKED: "retry-in", Fact.HELD: "held"}
        return self.on(topics[fact], destination=name) if fact in topics else None

    def written(self) -> set[int]:
        """Return the positions of the records on the topic of `feed`."""
        log = self.kafka.logs[output_topic("p", "feed"), 0]
        return {parse_position(dict(record.headers())["penstock-position"].decode()) for record in log}

    def check_done(self, failure: str = "") -> None:
        for name, (fact, topic) in self.ends.items():
            sent = self.on("egress", destination=name)
            known = {one: at for (node, one), at in self.facts.items() if node == f"transmit:{name}" and at}
            other = known.pop(self._end_instead(name, failure), set())  # of the one message that hit the failure
            assert len(other) <= 1, name
            assert known == {fact: sent - other}, name
            if topic is not None:
                assert self.on(topic, destination=name) == sent - other
        first, *later = sorted(self.on("egress", destination="strict"))
        dead, held = self.facts["transmit:strict", Fact.DEAD], self.facts["transmit:strict", Fact.HELD]
        assert first in dead | held, "a lane holds the message if its own dead letter already blocks the key"
        assert held >= set(later), "later messages of its key wait behind it"
        # a failure while its request is built dead-letters the first message unsent
        assert set(self.got["strict"]) == {first} or (not self.got["strict"] and first in dead)
        assert sorted(set(self.got["keyed"])) == list(dict.fromkeys(self.got["keyed"])), "the messages arrive in order"


class RetrierWorld(World):
    """Messages that are due, and messages that leave a delay tier."""

    kind = "retrier"

    def fill(self) -> None:
        for number in range(EACH):
            self.put("retry-in", number, destination="crm", attempt=1, not_before_us=1, first_us=1)
        for number in range(EACH, 2 * EACH):
            more = [(LEAVE_HEADER, b"1")]
            self.put("delay-10s", number, destination="crm", attempt=1, not_before_us=1, first_us=1, more=more)

    def records(self) -> list[Any]:
        return [DestinationRecord("p", "crm", 1, "active", HttpDestination(url="http://crm.example/"), [TOKEN])]

    def make_work(self, lane: LaneContext) -> LaneWork:
        return RetrierWork(lane)

    def is_accounted(self, meta: MessageMeta) -> bool:
        return any(meta.position in self.facts["transmit:crm", fact] for fact in (Fact.RELEASED, Fact.PARKED))

    def evidence(self, node: str, fact: str) -> set[int] | None:
        assert node == "transmit:crm"
        return self.on("retry-out") if fact == Fact.RELEASED else self.on(*DELAYS_S)

    def check_done(self, _failure: str = "") -> None:
        positions = {position_of(1, 0, number) for number in range(2 * EACH)}
        assert self.on("retry-out") == self.facts["transmit:crm", Fact.RELEASED] == positions


WORLDS: Final[dict[LaneKind, type[World]]] = {
    "process": ProcessWorld,
    "transmit": TransmitWorld,
    "retrier": RetrierWorld,
}


@contextmanager
def in_memory(world: World) -> Iterator[None]:
    """Run the lanes made in the block in the world's memory: without Kafka, sockets and waits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_module, "ControlReader", lambda *_: world.control())
        patch.setattr(lane_module, "lane_producer", lambda *_: MemoryKafkaProducer(world.kafka))
        patch.setattr(
            lane_module, "lane_consumer", lambda _k, _g, _n, done, **_: MemoryGroupConsumer(world.kafka, done)
        )
        patch.setattr(lane_module, "CONTROL_EVERY_S", 0.0)
        patch.setattr(checkpoint.Checkpointer.__init__, "__kwdefaults__", {"report_bytes": REPORT_BYTES})
        patch.setattr(retrier_module, "SignalReader", MemorySignalReader)
        patch.setattr(key_order, "topic_reader", lambda _kafka, topic: MemoryTopicReader(world.kafka, topic))
        patch.setattr(key_order, "NEW_SLOT_S", 0.0)
        patch.setattr(key_order, "READ_EVERY_S", 0.0)
        patch.setattr(breaker_gossip, "topic_reader", lambda *_: MemorySignals())
        if isinstance(world, TransmitWorld):
            patch.setattr(transmit_module, "HttpSender", lambda _ground: AnsweringSender(world.got))
            patch.setattr(writer, "ingest_producer", lambda *_: MemoryKafkaProducer(world.kafka))
        yield


class Raiser:
    """Tracer of a lane that raises at the `nth` execution of a step and records the lines that were run."""

    def __init__(self, step: Step | None = None, failure: BaseException | None = None, nth: int = 1) -> None:
        self._at = (ROOM + step.file, step.line) if step is not None else None
        self._failure = failure
        self._left = nth
        self.seen: set[tuple[str, int]] = set()

    @property
    def has_raised(self) -> bool:
        return self._left <= 0

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if not file.startswith(ROOM) or (self._at is not None and file != self._at[0]):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        if event == "line":
            place = (frame.f_code.co_filename, frame.f_lineno)
            if self._at is None:
                self.seen.add((place[0].removeprefix(ROOM), place[1]))
            elif place == self._at:
                self._left -= 1
                if not self._left and self._failure is not None:
                    raise self._failure
        return self._line
