"""State of one destination in this lane: its record, its queue, its limits and its health."""

import logging
from collections import deque
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from dataplane.causes import Cause
from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.encoding import EventEncoder
from dataplane.plan.outbound import fixed_headers
from dataplane.plan.rows import CompiledRow
from dataplane.plan.template import CompiledTemplate
from dataplane.spec import (
    AvroEncoding,
    LakeDestination,
    OAuth2,
    PostgresDestination,
    S3Destination,
    UrlDestination,
    encoding_of,
)
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.http.secrets import OpenedSecrets
from dataplane.transmit.http.sender import KEPT_BYTES, MAX_ANSWER_BYTES
from dataplane.transmit.policy.breaker import Breaker
from dataplane.transmit.policy.destination_latency import DestinationLatency
from dataplane.transmit.policy.key_turns import KeyTurns
from dataplane.transmit.policy.limits import ConcurrencyLimit, RateLimit, RetryBudget
from dataplane.transmit.policy.rules import compile_rules, needs_body
from dataplane.transmit.policy.tokens import OAuthTokens

log = logging.getLogger(__name__)

STORM: Final = 20  # non-recoverable answers in a row suspend a destination
SHORT_S: Final = 2.0  # messages stay in the queue for a pause up to this long
SHORTEST_S: Final = 0.001
QUEUE_WAIT_S: Final = 10.0  # if destinations share a lane, no message waits longer in its queue than this
LOCKED_WAIT_S: Final = 10.0  # a control record or a secret may arrive late
LOCKED_ROOM: Final = 1_000  # messages that wait for it; more are retried later, or they would fill the ack window


class QueueAction(Enum):
    """Action for a target's queue."""

    SEND = "send"
    WAIT = "wait"
    DIVERT = "divert"
    PARK = "park"
    HOLD = "hold"
    CANCEL = "cancel"


class LaneShare(Struct, frozen=True):
    """A lane's share of its destinations' limits, and its role.

    prober:  the lane probes destinations whose breaker is open
    share:   fraction of a destination's rate and concurrency
    diverts: the lane sends messages for slow destinations to the slow lane
    """

    prober: bool
    share: float
    diverts: bool = False


class DestinationTarget:
    """One destination of one pipe.

    `locked` names the cause for which nothing is sent, "" if there is none: no message is sent unsigned.
    """

    def __init__(self, record: DestinationRecord, secrets: OpenedSecrets, lane_share: LaneShare, now_s: float) -> None:
        self.active = 0
        self.queue: deque[Any] = deque()
        self.batch_length, self.batch_due_s = -1, 0.0  # queue when no batch was due, and when one will be
        self.keys: KeyTurns[Any] = KeyTurns()  # of deliveries, which know their target
        self.breaker = Breaker(now_s)
        self.slowness = DestinationLatency()
        self.slow_us = 0  # Unix time of the last applied signal that changed it
        self.budget = RetryBudget()
        self.opened_us = 0  # Unix time at which its breaker opened in this lane
        # other lanes believe its breaker open and wait for this lane's signal that it is closed
        self.is_close_unpublished = False
        self.throttle = ConcurrencyLimit(record.to.concurrency * lane_share.share, now_s)
        self.shut_until_s = 0.0  # no sends before this (Retry-After)
        self.suspended = ""
        self.pipe_paused = False
        self.tenant = record.pipe  # until the pipe's record is known
        self.in_a_row = 0
        self.last_status = 0
        self.last_reason = ""
        self.taken_s = now_s  # when a message for it was last read
        self.sampled_us = 0  # when the last successful attempt began that the attempt log has
        self.expected, self.expected_until_s = 0, 0.0  # record version of a released message; maybe not read yet here
        self.adopt(record, secrets, lane_share, now_s)

    def adopt(self, record: DestinationRecord, secrets: OpenedSecrets, lane_share: LaneShare, now_s: float) -> None:
        """Apply a newer record: queued messages are sent to its address, and the old address's health is forgotten."""
        to = record.to
        self.record, self.lane_share = record, lane_share
        self.posts = isinstance(to, UrlDestination)
        self.row = CompiledRow(to) if isinstance(to, PostgresDestination) else None
        self.is_object_store = isinstance(to, S3Destination)
        self.method = "PUT" if self.is_object_store else "POST"
        self.success: str = Fact.STORED if isinstance(to, LakeDestination) else Fact.DELIVERED
        self.ordered = to.ordered
        self.patience_s = QUEUE_WAIT_S + (to.batch.max_wait_ms / 1_000 if to.batch is not None else 0.0)
        self.secrets = secrets
        self.locked = secrets.locked or (Cause.DEPENDENCY_MISSING if lacks_schema(record) else "")
        self.signers = secrets.signers
        self.secret_texts = secrets.texts
        self.tokens = OAuthTokens(to.auth, secrets.client_secret) if isinstance(to.auth, OAuth2) else None
        self.timeout_ms = int(to.timeout_s * 1_000)
        self.rules = compile_rules(to.rules)
        self.keep_bytes = MAX_ANSWER_BYTES if needs_body(self.rules) else KEPT_BYTES
        self.fixed_headers = [*fixed_headers(to), *secrets.headers]
        self.template = CompiledTemplate(to.url, to.template) if to.template is not None else None
        self.encoder = encoder_of(record) if self.posts else None
        self.rate = RateLimit(max(to.rate_per_s * lane_share.share, 0.001), now_s) if to.rate_per_s else None
        self.throttle.limit(to.concurrency * lane_share.share)
        self.shut_until_s = 0.0
        self.batch_length = -1
        self.suspended = ""
        self.in_a_row = 0
        self.slowness.become(False)
        if self.breaker.state != "closed":
            self.breaker.close(now_s)

    def set_share(self, lane_share: LaneShare, now_s: float) -> None:
        """Apply a new share, after the number of lanes changed."""
        to = self.record.to
        self.lane_share = lane_share
        self.rate = RateLimit(max(to.rate_per_s * lane_share.share, 0.001), now_s) if to.rate_per_s else None
        self.throttle.limit(to.concurrency * lane_share.share)

    @property
    def holds(self) -> bool:
        """True if its messages are to be held."""
        return bool(self.suspended) or self.pipe_paused or self.record.state in ("paused", "suspended")

    def note_read(self, meta: MessageMeta, now_s: float) -> None:
        """Note that a message for it was read.

        A message that was released or redriven under a newer record than this lane has read waits for that record:
        under the old one it would be held again, or be sent to the address at which it failed.
        """
        self.taken_s = now_s
        if meta.as_of > max(self.expected, self.record.version):
            self.expected, self.expected_until_s = meta.as_of, now_s + LOCKED_WAIT_S

    def queue_action(self, now_s: float) -> QueueAction:
        """Return the action for the queue now. While a breaker is half-open, messages beyond its probes wait."""
        if self.record.state == "removed":
            return QueueAction.CANCEL
        is_behind = self.record.version < self.expected and now_s < self.expected_until_s
        if is_behind or self.holds:
            return QueueAction.WAIT if is_behind else QueueAction.HOLD
        if self.locked:
            waits_too_long = self.queue and now_s - self.queue[0].taken_s > LOCKED_WAIT_S
            return QueueAction.PARK if waits_too_long or len(self.queue) >= LOCKED_ROOM else QueueAction.WAIT
        pause_s = self._pause_s(now_s)
        if pause_s > SHORT_S or not self.breaker.allowance(now_s, prober=self.lane_share.prober):
            return QueueAction.PARK
        if self.slowness.is_slow and self.lane_share.diverts and not self.ordered:
            return QueueAction.DIVERT
        return QueueAction.WAIT if pause_s else QueueAction.SEND

    def is_exempt_from_hold(self, meta: MessageMeta) -> bool:
        """Return True if a person released this message or chose it as a probe: it is sent while others are held.

        A replay's copy of a probe is not meant.
        """
        is_requested = meta.through or (meta.id == self.record.probe and not meta.replay)
        return is_requested and not (self.suspended or self.pipe_paused or self.locked)

    def has_token(self, now_s: float) -> bool:
        """Return True if the destination needs no access token or a usable one is there."""
        return self.tokens is None or self.tokens.usable(now_s)

    def _pause_s(self, now_s: float) -> float:
        """Return the seconds to pause a healthy destination: for its Retry-After, or for an access token."""
        if self.tokens is not None and not self.has_token(now_s):
            return max(self.tokens.wait_s(now_s), SHORTEST_S)
        return max(0.0, self.shut_until_s - now_s)

    def room(self, now_s: float) -> int:
        """Return the number of sends that this destination's limits and breaker allow to begin now."""
        allowance = self.breaker.allowance(now_s, prober=self.lane_share.prober)
        return min(allowance - self.active, self.room_by_limits(now_s))

    def room_by_limits(self, now_s: float) -> int:
        """Return the number of sends that its limits alone allow to begin now, regardless of its breaker."""
        room = int(self.throttle.allowed) - self.active
        return room if self.rate is None else min(room, self.rate.room(now_s))

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until a send may begin; 0 if nothing delays one."""
        sign_in_s = self.tokens.wait_s(now_s) if self.tokens is not None else 0.0
        return max(sign_in_s, self.shut_until_s - now_s, self.breaker.until_s - now_s)

    def refused(self, cause: str, *, of_copy: bool = False) -> None:
        """Count a non-recoverable response. STORM in a row suspend the destination instead of emptying the stream.

        of_copy: a replay made the message. Its refusal does not count: the destination may accept all newer messages
        """
        if of_copy:
            return
        self.in_a_row += 1
        if self.in_a_row >= STORM:
            self.suspend(Cause.STORM if cause == Cause.REJECTED else cause)

    def suspend(self, cause: str) -> None:
        """Send nothing more until a newer record is read."""
        if not self.suspended:
            self.suspended = cause
            log.warning("suspended: pipe=%s destination=%s cause=%s", self.record.pipe, self.record.name, cause)


def lacks_schema(record: DestinationRecord) -> bool:
    """Return True if the destination's events are to be encoded and the record has no schema: nothing is sent as JSON.

    The Provisioner publishes no such record.
    """
    return encoding_of(record.to) is not None and record.schema is None


def encoder_of(record: DestinationRecord) -> EventEncoder | None:
    """Return the encoder of a destination's events; None for JSON, and if the record lacks the schema."""
    encoding, schema = encoding_of(record.to), record.schema
    if not isinstance(encoding, AvroEncoding) or schema is None:
        return None
    return EventEncoder(encoding, schema.schema_id, schema.fingerprint, schema.document)
