"""The transmit lane's work: send each egress record to its destination, try again a little, then park or bury it.

The same work serves first attempts (lane kind `transmit`, topic egress) and global retries (`transmit-retry`, topic
retry-out), so that retries never delay first attempts.
"""

import heapq
import itertools
import logging
import random
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import Message

from dataplane.ledger.audit import AUDIT_VERSION, Attempt, Attempts, encode
from dataplane.ledger.facts import Fact, FactKey
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.ledger.units import format_position
from dataplane.names import transmit_node
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane
from dataplane.transmit.memory import Memory, Unit
from dataplane.transmit.schedule import local_pause_s, next_try_us
from dataplane.transmit.sender import Answer, Sender
from dataplane.transmit.signature import sign
from dataplane.transmit.targets import Target, Targets
from dataplane.transmit.verdict import Outcome, judge

log = logging.getLogger(__name__)

ATTEMPTS_A_RECORD: Final = 2_000  # a few hundred bytes each: well below what a topic takes
SAMPLE: Final = 20  # delivered attempts told per checkpoint; failures are all told
CUT_SHORT_DELAY_US: Final = 1_000_000
MAX_LOCAL_WAIT_S: Final = 10.0


class Send(msgspec.Struct, eq=False):
    """One unit on its way to its destination. `places` are where it was read: more than one if it came twice."""

    unit: Unit
    meta: Meta
    target: Target
    headers: Headers
    key: bytes | None
    body: bytes
    places: list[tuple[int, int]]
    tries: int = 0
    began_us: int = 0
    waited_s: float = 0.0


class Stored(msgspec.Struct, frozen=True):
    """What follows when a parked or dead record is stored: the fact, and the places to settle."""

    send: Send
    fact: str
    detail: str


class TransmitWork:
    """Parallel sends with a total timeout, per-destination concurrency, local tries, then retry-in or dead."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._targets = Targets(lane.table, lane.settings.fernet_keys)
        self._sender = Sender(lane.settings.destination_allow)
        self._retry_in = lane.cell.topics["retry-in"].name
        self._dead = lane.cell.topics["dead"].name
        self._attempts_topic = lane.cell.topics["attempts"].name
        self._memories: dict[int, Memory] = {}
        self._under_way: dict[Unit, Send] = {}
        self._ready: set[Target] = set()  # targets with something in their queue
        self._pausing: list[tuple[float, int, Send]] = []  # heap of local tries by monotonic time
        self._numbers = itertools.count()
        self._homeless: list[
            tuple[Message, Meta, Headers]
        ] = []  # the control table does not know their destination yet
        self._attempts: list[Attempt] = []
        self._delivered = 0
        self._sampled = 0

    # -- taking ----------------------------------------------------------------------------------------------------

    def take(self, messages: Sequence[Message]) -> None:
        """Queue each message at its destination, unless this host has settled its unit before."""
        now_us = _now_us()
        for message, meta, headers in self._lane.read_all(messages):
            node = transmit_node(meta.destination)
            self._lane.lags.add((meta.pipe, node, meta.bucket, "in"), now_us - meta.event_time_us)
            self._admit(message, meta, headers[1:])

    def _admit(self, message: Message, meta: Meta, headers: Headers) -> None:
        place = (message.partition(), message.offset())
        unit = Unit(meta.pipe, meta.destination, meta.child, meta.attempt, meta.position)
        known = self._memory(place[0]).recall(unit)
        if known is not None:
            self._file(unit, meta.bucket, *known)
            self._lane.settle(*place)
            return
        twin = self._under_way.get(unit)
        if twin is not None:
            twin.places.append(place)
            return
        target = self._targets.find(meta.pipe, meta.destination)
        if target is None:
            self._homeless.append((message, meta, headers))
            return
        send = Send(unit, meta, target, headers, message.key(), message.value() or b"", [place])
        self._under_way[unit] = send
        if target.record.state == "removed":
            self._finish(send, Fact.CANCELLED, "")
        else:
            target.queue.append(send)
            self._ready.add(target)

    def _memory(self, partition: int) -> Memory:
        memory = self._memories.get(partition)
        if memory is None:
            folder = self._lane.settings.var / "data" / "settled"
            memory = self._memories[partition] = Memory(folder, "{}-{}".format(*self._lane.slots.place(partition)))
        return memory

    # -- sending ---------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Start what may start, move bytes, settle what ended."""
        if self._homeless:
            homeless, self._homeless = self._homeless, []
            for entry in homeless:
                self._admit(*entry)
        self._resume_local_tries()
        for target in list(self._ready):
            while (
                target.queue
                and not target.locked
                and target.active < target.record.to.concurrency
                and self._sender.room
            ):
                send = target.queue.popleft()
                if self._may_begin(send):
                    self._begin(send)
            if not target.queue:
                self._ready.discard(target)
        for answer in self._sender.turn(BUSY_WAIT_S):
            self._answered(answer.token, answer)
        self._flush()

    def _flush(self) -> None:
        """Write the verdicts down. The files of a partition that has gone are closed: its new owner goes on in them."""
        for partition, memory in list(self._memories.items()):
            memory.flush()
            if not self._lane.owns(partition):
                self._memories.pop(partition).close()

    def _may_begin(self, send: Send) -> bool:
        """A send begins only while a place it was read from is ours; else the new owner sends it."""
        if any(self._lane.may_send(partition) for partition, _ in send.places):
            return True
        self._under_way.pop(send.unit, None)
        return False

    def _begin(self, send: Send) -> None:
        target, meta = send.target, send.meta
        target.active += 1
        send.tries += 1
        send.began_us = _now_us()
        if not meta.first_us:
            meta.first_us = send.began_us
        headers = request_headers(send, send.began_us // 1_000_000)
        self._sender.begin(send, target.record.to.url, headers, send.body, target.timeout_ms)

    def _resume_local_tries(self) -> None:
        now = time.monotonic()
        while self._pausing and self._pausing[0][0] <= now:
            send = heapq.heappop(self._pausing)[2]
            send.target.queue.appendleft(send)
            self._ready.add(send.target)

    # -- settling --------------------------------------------------------------------------------------------------

    def _answered(self, send: Send, answer: Answer) -> None:
        send.target.active -= 1
        verdict = judge(answer.status, answer.curl_code, forbidden=answer.forbidden)
        if verdict.outcome is Outcome.DELIVERED:
            self._tell(send, answer, "delivered", "")
            self._finish(send, Fact.DELIVERED, "")
        elif verdict.outcome is Outcome.DEAD:
            self._tell(send, answer, "dead", _reason(verdict.cause, answer))
            self._bury(send, verdict.cause, _reason(verdict.cause, answer))
        else:
            self._try_again(send, answer, verdict.cause)

    def _try_again(self, send: Send, answer: Answer, cause: str) -> None:
        reason = _reason(cause, answer)
        pause_s = local_pause_s(send.tries, random.random())  # noqa: S311 (jitter, not a secret)
        spent_s = send.waited_s + pause_s + answer.total_us / 1_000_000
        if send.tries < send.target.record.to.retry.local_tries and spent_s < MAX_LOCAL_WAIT_S:
            send.waited_s = spent_s
            self._tell(send, answer, "retry", reason)
            heapq.heappush(self._pausing, (time.monotonic() + pause_s, next(self._numbers), send))
            return
        now_us = _now_us()
        due_us = next_try_us(
            send.meta.attempt + 1, now_us=now_us, first_us=send.meta.first_us, span_s=send.target.record.to.retry.span_s
        )
        if due_us is None:
            self._tell(send, answer, "dead", f"gave up: {reason}")
            self._bury(send, "gave-up", reason)
        else:
            self._tell(send, answer, "parked", reason, due_us)
            self._park(send, due_us)

    def _park(self, send: Send, due_us: int) -> None:
        """To retry-in, as the next round; settled when that record is stored."""
        round_ = send.meta.attempt + 1
        meta = msgspec.structs.replace(send.meta, attempt=round_, not_before_us=due_us)
        self._store(self._retry_in, Stored(send, Fact.PARKED, str(round_)), meta, [])

    def _bury(self, send: Send, cause: str, detail: str) -> None:
        log.warning("dead: pipe=%s destination=%s cause=%s", send.meta.pipe, send.meta.destination, cause)
        node = transmit_node(send.meta.destination)
        more = [
            ("penstock-node", node.encode()),
            ("penstock-cause", cause.encode()),
            ("penstock-detail", detail.encode()),
        ]
        self._store(self._dead, Stored(send, Fact.DEAD, cause), send.meta, more)

    def _store(self, topic: str, token: Stored, meta: Meta, more: Headers) -> None:
        send = token.send
        record: dict[str, Any] = {
            "value": send.body,
            "headers": [(META_HEADER, encode_meta(meta)), *send.headers, *more],
        }
        if send.key is not None:
            record["key"] = send.key
        else:
            record["partition"] = send.places[0][0] % self._lane.cell.topics["retry-in"].partitions
        self._lane.outbox.send(topic, token, **record)

    def acked(self, token: Any) -> None:
        """A parked or dead record is stored: its unit is settled here."""
        if isinstance(token, Stored):
            self._finish(token.send, token.fact, token.detail)

    def _finish(self, send: Send, fact: str, detail: str) -> None:
        self._under_way.pop(send.unit, None)
        for partition in {partition for partition, _ in send.places}:
            self._memory(partition).note(send.unit, fact, detail)
        self._file(send.unit, send.meta.bucket, fact, detail)
        if fact == Fact.DELIVERED:
            key = (send.meta.pipe, transmit_node(send.meta.destination), send.meta.bucket, "out")
            self._lane.lags.add(key, _now_us() - send.meta.event_time_us)
        for place in send.places:
            self._lane.settle(*place)

    def _file(self, unit: Unit, bucket: int, fact: str, detail: str) -> None:
        key = FactKey(transmit_node(unit.destination), fact, detail, unit.child)
        self._lane.facts.add(unit.pipe, bucket, key, unit.position)

    # -- telling ---------------------------------------------------------------------------------------------------

    def _tell(self, send: Send, answer: Answer, outcome: str, reason: str, next_us: int = 0) -> None:
        if outcome == "delivered":
            self._delivered += 1
            self._sampled += 1
            if self._sampled > SAMPLE:
                return
        self._attempts.append(
            Attempt(
                message_id=send.meta.id,
                position=send.meta.position,
                pipe=send.meta.pipe,
                revision=send.meta.revision,
                destination=send.meta.destination,
                bucket=send.meta.bucket,
                number=send.meta.attempt * send.target.record.to.retry.local_tries + send.tries,
                started_us=send.began_us,
                dns_us=answer.dns_us,
                connect_us=answer.connect_us,
                tls_us=answer.tls_us,
                first_byte_us=answer.first_byte_us,
                total_us=answer.total_us,
                status=answer.status,
                outcome=outcome,
                reason=reason,
                address=answer.address,
                next_us=next_us,
            )
        )

    def report(self) -> None:
        """The attempts since the last checkpoint; many failures (a broker was away) make more than one record."""
        if not self._delivered and not self._attempts:
            return
        identity = self._lane.identity
        key, delivered = identity.writer.encode(), self._delivered
        for first in range(0, max(1, len(self._attempts)), ATTEMPTS_A_RECORD):
            some = self._attempts[first : first + ATTEMPTS_A_RECORD]
            record = Attempts(AUDIT_VERSION, identity.cell, identity.writer, delivered, some)
            self._lane.outbox.send(self._attempts_topic, None, key=key, value=encode(record))
            delivered = 0
        self._attempts, self._delivered, self._sampled = [], 0, 0

    # -- the loop's questions --------------------------------------------------------------------------------------

    def in_flight(self) -> int:
        """Units queued, pausing or being sent."""
        return len(self._under_way)

    def patience_s(self) -> float:
        """No wait while bytes move: `turn` waits on the sockets."""
        if self._sender.active:
            return 0.0
        return BUSY_WAIT_S if self._under_way or self._lane.outbox.in_flight else IDLE_WAIT_S

    def forget(self, partitions: Iterable[int]) -> None:
        """Sends not begun are left to the new owner; those begun may end while the lane waits a moment."""
        gone = set(partitions)

        def lost(send: Send) -> bool:
            return all(partition in gone for partition, _ in send.places)

        for target in self._ready:
            for send in [send for send in target.queue if lost(send)]:
                target.queue.remove(send)
                self._under_way.pop(send.unit, None)
        self._pausing = [entry for entry in self._pausing if not self._drop_if(lost, entry[2])]
        heapq.heapify(self._pausing)
        self._homeless = [entry for entry in self._homeless if entry[0].partition() not in gone]

    def _drop_if(self, lost: Any, send: Send) -> bool:
        if lost(send):
            self._under_way.pop(send.unit, None)
            return True
        return False

    def give_back(self) -> None:
        """Drain is over: what has not been answered yet stays uncommitted if it never began, else it is parked."""
        for target in self._ready:
            while target.queue:
                self._under_way.pop(target.queue.popleft().unit, None)
        for _, _, send in self._pausing:
            self._park(send, _now_us() + CUT_SHORT_DELAY_US)
        self._pausing = []
        for send in self._sender.cancel_all():
            send.target.active -= 1
            self._park(send, _now_us() + CUT_SHORT_DELAY_US)

    def close(self) -> None:
        """Close connections and files."""
        self._sender.close()
        for memory in self._memories.values():
            memory.close()


def request_headers(send: Send, now_s: int) -> list[str]:
    """The headers of one attempt: Standard Webhooks, the content's own type, CloudEvents attributes, our position."""
    meta = send.meta
    names = {name: value.decode("latin-1") for name, value in send.headers}
    headers = [
        "Expect:",
        "User-Agent: Penstock/1",
        f"Content-Type: {names.pop('content-type', 'application/json')}",
        f"webhook-id: {meta.id}",
        f"webhook-timestamp: {now_s}",
        f"penstock-position: {format_position(meta.position)}",
    ]
    if send.target.keys:
        headers.append(f"webhook-signature: {sign(send.target.keys, meta.id, now_s, send.body)}")
    headers += [f"ce-{name[3:]}: {value}" for name, value in names.items() if name.startswith("ce_")]
    if "traceparent" in names:
        headers.append(f"traceparent: {names['traceparent']}")
    return headers


def _reason(cause: str, answer: Answer) -> str:
    if answer.status:
        return f"{cause}: answered {answer.status}"
    return f"{cause}: {answer.message}"[:200] if answer.message else cause


def _now_us() -> int:
    return time.time_ns() // 1_000
