"""What tenants may still send to this replica: token buckets by tenant, and bodies that are in flight.

Time comes in as an argument (monotonic seconds), but for the default clock of `Meters`. A tenant's limits are shared by
all replicas: each takes what the others leave, and never less than an equal part (`Meter.share`).
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from dataplane.ingest.problems import RefusalError
from dataplane.tables.control import ControlTable
from dataplane.tables.quotas import IN_DATA_PLANE, Quotas, limits_of
from dataplane.tables.records import QuotaRecord, Record

BURST_S: Final = 2.0  # a bucket holds the quota of so many seconds: at the default, the largest batch
FORGET_S: Final = 300.0
LEAST_TOLD: Final = 0.02  # of an equal part: replicas that took less of a tenant's quota do not tell the others
EVENTS, BYTES, IN_FLIGHT = "events", "bytes", "in-flight"
HTTPHeaders = list[tuple[str, str]]


class OverQuotaError(RefusalError):
    """The tenant's quota is exceeded: 429. `policy` names the limit, `headers` say when to come again.

    The problem follows draft-ietf-httpapi-ratelimit-headers-11: `violated-policies`, RateLimit, RateLimit-Policy.
    """

    def __init__(self, policy: str, detail: str, wait_s: float, headers: HTTPHeaders) -> None:
        wait = max(1, math.ceil(wait_s))
        super().__init__(429, "quota-exceeded", detail, retry_after_s=wait)
        self.policies, self.headers = [policy], headers


class Bucket:
    """A token bucket that may go into debt. At rest it is full: it holds BURST_S of its rate."""

    __slots__ = ("_at_s", "level", "rate")

    def __init__(self, rate: float, now_s: float) -> None:
        self.rate = rate
        self.level = rate * BURST_S
        self._at_s = now_s

    def set_rate(self, rate: float, now_s: float) -> None:
        """Fill at another rate from now on."""
        self.fill(now_s)
        self.rate = rate
        self.level = min(self.level, rate * BURST_S)

    def fill(self, now_s: float) -> float:
        """Add what has come since the last time; the level."""
        self.level = min(self.rate * BURST_S, self.level + max(0.0, now_s - self._at_s) * self.rate)
        self._at_s = now_s
        return self.level

    def wait_s(self, amount: float) -> float:
        """How long until the level is `amount`, or as much of it as the bucket holds."""
        return max(0.0, min(amount, self.rate * BURST_S) - self.level) / self.rate

    @property
    def is_full(self) -> bool:
        """True if nothing was taken of late."""
        return self.level >= self.rate * BURST_S


class Meter:
    """One tenant at this replica. `taken`: events and bytes admitted since they were last told to the other replicas.

    A batch takes as many events as there are tokens. Bytes are charged when a body has been read, so one body may take
    the level below zero; then nothing is read until it is above zero again.
    """

    def __init__(self, quota: Quotas, now_s: float) -> None:
        self._quota = quota
        self._events = Bucket(quota.events_per_s, now_s)
        self._bytes = Bucket(quota.bytes_per_s, now_s)
        self.in_flight = 0
        self.taken = [0, 0]

    def set_quota(self, quota: Quotas) -> None:
        """Other limits apply; the next `share` hands them out."""
        self._quota = quota

    def share(self, replicas: int, others: tuple[float, float], now_s: float) -> None:
        """Take what the other replicas leave of the limits, and an equal part at least.

        others: events and bytes a second that they admitted in the last second. All together admit no more than the
        limit while demand is steady; after a change of it, up to `replicas` times as much until the next reports.
        """
        for bucket, limit, taken in (
            (self._events, self._quota.events_per_s, others[0]),
            (self._bytes, self._quota.bytes_per_s, others[1]),
        ):
            bucket.set_rate(max(limit / replicas, limit - taken), now_s)

    def check(self, now_s: float) -> None:
        """Raise OverQuotaError if nothing may come now: before anything of the request's body is read."""
        if self._events.fill(now_s) < 1:
            raise self._over_events(1)
        if self._bytes.fill(now_s) <= 0:
            wait_s = self._bytes.wait_s(1)
            raise self._over(BYTES, f"the quota is {self._quota.bytes_per_s} bytes per second", wait_s)

    def admit(self, events: int, now_s: float) -> int:
        """How many of so many events may be stored: the first ones. They are taken."""
        admitted = min(events, max(0, int(self._events.fill(now_s))))
        self._events.level -= admitted
        self.taken[0] += admitted
        return admitted

    def room(self, now_s: float) -> int:
        """How many events `admit` would take now; 0 while bytes are overdrawn."""
        return max(0, int(self._events.fill(now_s))) if self._bytes.fill(now_s) > 0 else 0

    def charge(self, size_bytes: int) -> None:
        """A body of this size was read."""
        self._bytes.level -= size_bytes
        self.taken[1] += size_bytes

    def begin(self, size_bytes: int) -> None:
        """So much more of bodies is read or waits for Kafka. Raises OverQuotaError; then it does not count."""
        limit = self._quota.in_flight_bytes
        if self.in_flight + size_bytes > limit:
            raise self._over(IN_FLIGHT, f"the quota is {limit} bytes of requests at the same time", 1)
        self.in_flight += size_bytes

    def over_rest(self, rest: int) -> OverQuotaError:
        """The refusal of the last `rest` events of a batch."""
        return self._over_events(rest)

    def headers(self) -> HTTPHeaders:
        """The limits, and what is left of them here."""
        quota = self._quota
        window_s = int(BURST_S)
        policy = (
            f'"{EVENTS}";q={quota.events_per_s * window_s};w={window_s}, '
            f'"{BYTES}";q={quota.bytes_per_s * window_s};w={window_s};qu="content-bytes"'
        )
        return [("ratelimit-policy", policy), self.left()]

    def left(self) -> tuple[str, str]:
        """The RateLimit field: what is left, and in how many seconds it is the whole again."""
        parts = [
            f'"{name}";r={max(0, int(bucket.level))};t={math.ceil(bucket.wait_s(bucket.rate * BURST_S))}'
            for name, bucket in ((EVENTS, self._events), (BYTES, self._bytes))
        ]
        return "ratelimit", ", ".join(parts)

    @property
    def is_idle(self) -> bool:
        """True if forgetting the meter changes nothing."""
        return not self.in_flight and self._events.is_full and self._bytes.is_full

    def fill(self, now_s: float) -> None:
        """Bring both buckets up to date."""
        self._events.fill(now_s)
        self._bytes.fill(now_s)

    def told(self, span_s: float, replicas: int) -> tuple[float, float] | None:
        """Events and bytes a second since the last time, for the other replicas; None if it is too little to matter."""
        (events, size_bytes), self.taken = self.taken, [0, 0]
        rates = events / span_s, size_bytes / span_s
        least = LEAST_TOLD / replicas
        if rates[0] < least * self._quota.events_per_s and rates[1] < least * self._quota.bytes_per_s:
            return None
        return rates

    def _over_events(self, events: int) -> OverQuotaError:
        detail = f"the quota is {self._quota.events_per_s} events per second"
        return self._over(EVENTS, detail, self._events.wait_s(events))

    def _over(self, policy: str, detail: str, wait_s: float) -> OverQuotaError:
        return OverQuotaError(policy, f"{detail}; send this again later", wait_s, self.headers())


class Peers:
    """The other replicas, as their heartbeats describe them. Pure: used by Meters, fed by who reads the heartbeats."""

    FRESH_S: Final = 3.5

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, Mapping[str, tuple[float, float]]]] = {}

    def hear(self, writer: str, taken: Mapping[str, tuple[float, float]], now_s: float) -> None:
        """A replica says what it admitted of each tenant."""
        self._seen[writer] = (now_s, taken)

    def gone(self, writer: str) -> None:
        """A replica has ended."""
        self._seen.pop(writer, None)

    def live(self, now_s: float) -> int:
        """How many others there are now."""
        self._seen = {name: seen for name, seen in self._seen.items() if now_s - seen[0] <= self.FRESH_S}
        return len(self._seen)

    def taken(self, tenant: str) -> tuple[float, float]:
        """Events and bytes a second of a tenant that all of them admitted."""
        rates = [taken[tenant] for _, taken in self._seen.values() if tenant in taken]
        return sum(events for events, _ in rates), sum(size_bytes for _, size_bytes in rates)


class Flight:
    """The bytes of one request that are in flight. Closed when it is answered."""

    __slots__ = ("_meters", "_size", "meter")

    def __init__(self, meters: "Meters", meter: Meter) -> None:
        self._meters, self.meter, self._size = meters, meter, 0

    def __enter__(self) -> "Flight":
        return self

    def __exit__(self, *_: object) -> None:
        self.meter.in_flight -= self._size
        self._meters.in_flight -= self._size

    def grow(self, size_bytes: int) -> None:
        """So much more is about to be read. Raises RefusalError: 429 for the tenant's quota, 503 for the replica's."""
        meters = self._meters
        if meters.in_flight + size_bytes > meters.most_bytes:
            raise RefusalError(503, "unavailable", "too many requests are under way; send this again", retry_after_s=1)
        self.meter.begin(size_bytes)
        meters.in_flight += size_bytes
        self._size += size_bytes


class Meters:
    """The meters of all tenants that send to this replica. Used from one thread."""

    def __init__(
        self, table: ControlTable, defaults: Quotas, most_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`most_bytes`: of all bodies that are in flight here at the same time."""
        self.in_flight, self.most_bytes = 0, most_bytes
        self.clock = clock
        self.peers = Peers()
        self._table, self._defaults = table, defaults
        self._meters: dict[str, Meter] = {}
        self._told_s = clock()
        self._forget_due_s = clock() + FORGET_S
        table.on_change(self._changed)

    def of(self, tenant: str) -> Meter:
        """The tenant's meter."""
        return self._meters.get(tenant) or self._open(tenant)

    def flight(self, tenant: str) -> Flight:
        """For one request of the tenant."""
        return Flight(self, self.of(tenant))

    def quota(self, tenant: str) -> Quotas:
        """The limits that apply to a tenant now."""
        record = self._table.quota(tenant)
        own = {name: getattr(record, name) for name in IN_DATA_PLANE} if record is not None else {}
        return limits_of(self._defaults, own)

    def tell(self) -> dict[str, tuple[float, float]]:
        """What was admitted since the last call, by tenant: for the heartbeat."""
        now_s = self.clock()
        span_s, replicas = max(0.1, now_s - self._told_s), 1 + self.peers.live(now_s)
        said = {tenant: told for tenant, meter in self._meters.items() if (told := meter.told(span_s, replicas))}
        self._told_s = now_s
        self._forget_idle(now_s)
        self.share_out()
        return said

    def share_out(self) -> None:
        """Give each meter its part of the limits, by what is known of the other replicas now."""
        now_s = self.clock()
        replicas = 1 + self.peers.live(now_s)
        for tenant, meter in self._meters.items():
            meter.share(replicas, self.peers.taken(tenant), now_s)

    def _open(self, tenant: str) -> Meter:
        now_s = self.clock()
        meter = self._meters[tenant] = Meter(self.quota(tenant), now_s)
        meter.share(1 + self.peers.live(now_s), self.peers.taken(tenant), now_s)
        return meter

    def _changed(self, record: Record) -> None:
        if isinstance(record, QuotaRecord) and (meter := self._meters.get(record.tenant)) is not None:
            now_s = self.clock()
            meter.set_quota(self.quota(record.tenant))
            meter.share(1 + self.peers.live(now_s), self.peers.taken(record.tenant), now_s)

    def _forget_idle(self, now_s: float) -> None:
        if now_s < self._forget_due_s:
            return
        self._forget_due_s = now_s + FORGET_S
        for meter in self._meters.values():
            meter.fill(now_s)
        self._meters = {tenant: meter for tenant, meter in self._meters.items() if not meter.is_idle}
