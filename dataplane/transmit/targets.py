"""One destination as this lane sees it: its record, its queue, what it may be sent now, how well it is."""

import logging
from collections import deque
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from dataplane.ledger.meta import Meta
from dataplane.plan.outbound import fixed_headers
from dataplane.plan.template import CompiledTemplate
from dataplane.spec import HttpDestination, LakeDestination, OAuth2
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.breaker import Breaker
from dataplane.transmit.keys import Keys
from dataplane.transmit.limits import RateLimit, RetryBudget, Throttle
from dataplane.transmit.rules import ask_body, compile_rules
from dataplane.transmit.secrets import Secrets
from dataplane.transmit.sender import KEPT_BYTES, MAX_ANSWER_BYTES
from dataplane.transmit.slowness import Slowness
from dataplane.transmit.tokens import Tokens

log = logging.getLogger(__name__)

STORM: Final = 20  # non-recoverable answers in a row suspend a destination
SHORT_S: Final = 2.0  # a wait up to this long is waited in the queue
SHORTEST_S: Final = 0.001
QUEUE_WAIT_S: Final = 10.0  # where destinations share a lane, nobody waits longer for its turn than this
LOCKED_WAIT_S: Final = 10.0  # a record or a secret may come late
LOCKED_ROOM: Final = 1_000  # messages that wait for it; more go to the retrier at once, or they would fill the window


class Course(Enum):
    """What to do with a target's queue now."""

    SEND = "send"
    WAIT = "wait"
    DIVERT = "divert"
    PARK = "park"
    HOLD = "hold"
    CANCEL = "cancel"


class Seat(Struct, frozen=True):
    """Which part of its destinations' limits a lane has, and whether it probes open breakers.

    diverts: what is for slow destinations goes to the slow lane
    """

    prober: bool
    share: float  # of rate and concurrency
    diverts: bool = False


class Target:
    """One destination of one pipe. A `locked` one (it names the cause) gets nothing: no message goes out unsigned."""

    def __init__(self, record: DestinationRecord, secrets: Secrets, seat: Seat, now_s: float) -> None:
        self.active = 0
        self.queue: deque[Any] = deque()
        self.keys = Keys()
        self.breaker = Breaker(now_s)
        self.slowness = Slowness()
        self.slow_us = 0  # Unix time of the last change of it that was heard
        self.budget = RetryBudget()
        self.opened_us = 0  # Unix time of the moment its breaker opened here
        self.owes_word = False  # others think that it is shut, and wait for this lane to say that it is well
        self.throttle = Throttle(record.to.concurrency * seat.share, now_s)
        self.shut_until_s = 0.0  # it asked for no send before this (Retry-After)
        self.suspended = ""
        self.pipe_paused = False
        self.in_a_row = 0
        self.last_status = 0
        self.last_reason = ""
        self.taken_s = now_s  # when a message for it came last
        self.expected, self.expected_until_s = 0, 0.0  # a version of its record that others know, and this lane may not
        self.adopt(record, secrets, seat, now_s)

    def adopt(self, record: DestinationRecord, secrets: Secrets, seat: Seat, now_s: float) -> None:
        """A newer record: what is queued goes to the new address, and what is known of the old one counts no more."""
        to = record.to
        self.record, self.seat = record, seat
        self.posts = isinstance(to, HttpDestination)
        self.is_lake = isinstance(to, LakeDestination)
        self.ordered = to.ordered
        self.patience_s = QUEUE_WAIT_S + (to.batch.max_wait_ms / 1_000 if to.batch is not None else 0.0)
        self.secrets = secrets
        self.locked = secrets.locked
        self.signers = secrets.signers
        self.secret_texts = secrets.texts
        self.tokens = Tokens(to.auth, secrets.client_secret) if isinstance(to.auth, OAuth2) else None
        self.timeout_ms = int(to.timeout_s * 1_000)
        self.rules = compile_rules(to.rules)
        self.keep_bytes = MAX_ANSWER_BYTES if ask_body(self.rules) else KEPT_BYTES
        self.fixed_headers = [*fixed_headers(to), *secrets.headers]
        self.template = CompiledTemplate(to.url, to.template) if to.template is not None else None
        self.rate = RateLimit(max(to.rate_per_s * seat.share, 0.001), now_s) if to.rate_per_s else None
        self.throttle.limit(to.concurrency * seat.share)
        self.shut_until_s = 0.0
        self.suspended = ""
        self.in_a_row = 0
        self.slowness.become(False)
        if self.breaker.state != "closed":
            self.breaker.close(now_s)

    def sit(self, seat: Seat, now_s: float) -> None:
        """Lanes came or went: another share."""
        to = self.record.to
        self.seat = seat
        self.rate = RateLimit(max(to.rate_per_s * seat.share, 0.001), now_s) if to.rate_per_s else None
        self.throttle.limit(to.concurrency * seat.share)

    @property
    def holds(self) -> bool:
        """Whether its messages are to be kept, not sent."""
        return bool(self.suspended) or self.pipe_paused or self.record.state in ("paused", "suspended")

    def took(self, meta: Meta, now_s: float) -> None:
        """A message came. What was brought back under a newer record than this lane has read waits for that record:
        under the old one it would be held once more, or sent to where it died."""
        self.taken_s = now_s
        if meta.as_of > max(self.expected, self.record.version):
            self.expected, self.expected_until_s = meta.as_of, now_s + LOCKED_WAIT_S

    def course(self, now_s: float) -> Course:
        """What to do with the queue now. While a breaker is half-open, more than the probes wait."""
        if self.record.state == "removed":
            return Course.CANCEL
        is_behind = self.record.version < self.expected and now_s < self.expected_until_s
        if is_behind or self.holds:
            return Course.WAIT if is_behind else Course.HOLD
        if self.locked:
            waits_too_long = self.queue and now_s - self.queue[0].taken_s > LOCKED_WAIT_S
            return Course.PARK if waits_too_long or len(self.queue) >= LOCKED_ROOM else Course.WAIT
        pause_s = self._pause_s(now_s)
        if pause_s > SHORT_S or not self.breaker.allowance(now_s, prober=self.seat.prober):
            return Course.PARK
        if self.slowness.is_slow and self.seat.diverts and not self.ordered:
            return Course.DIVERT
        return Course.WAIT if pause_s else Course.SEND

    def lets_through(self, meta: Meta) -> bool:
        """Whether somebody asked for this message, as a probe or by choice: it goes out although others are held."""
        asked = meta.through or meta.id == self.record.probe
        return asked and not (self.suspended or self.pipe_paused or self.locked)

    def may_sign_in(self, now_s: float) -> bool:
        """Whether it asks for no token, or there is one."""
        return self.tokens is None or self.tokens.usable(now_s)

    def _pause_s(self, now_s: float) -> float:
        """How long nothing may be sent to a destination that is well: it asked for that, or there is no token yet."""
        if self.tokens is not None and not self.may_sign_in(now_s):
            return max(self.tokens.wait_s(now_s), SHORTEST_S)
        return max(0.0, self.shut_until_s - now_s)

    def room(self, now_s: float) -> int:
        """How many sends may begin now, as far as this destination is concerned."""
        allowance = self.breaker.allowance(now_s, prober=self.seat.prober)
        return min(allowance - self.active, self.room_by_limits(now_s))

    def room_by_limits(self, now_s: float) -> int:
        """The same, whatever its breaker says."""
        room = int(self.throttle.allowed) - self.active
        return room if self.rate is None else min(room, self.rate.room(now_s))

    def wait_s(self, now_s: float) -> float:
        """How long nothing is to be sent."""
        sign_in_s = self.tokens.wait_s(now_s) if self.tokens is not None else 0.0
        return max(sign_in_s, self.shut_until_s - now_s, self.breaker.until_s - now_s)

    def refused(self, cause: str) -> None:
        """A non-recoverable answer came; after many in a row the destination is suspended, the stream not emptied."""
        self.in_a_row += 1
        if self.in_a_row >= STORM:
            self.suspend("storm" if cause == "rejected" else cause)

    def suspend(self, cause: str) -> None:
        """Send nothing more until a newer record says that it is active."""
        if not self.suspended:
            self.suspended = cause
            log.warning("suspended: pipe=%s destination=%s cause=%s", self.record.pipe, self.record.name, cause)
