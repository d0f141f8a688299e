"""Quotas of tenants at this replica: token buckets per tenant, and a limit on request bodies in flight.

Time is an argument (monotonic seconds), except for the default clock of `TenantMeters`. All replicas share a tenant's
limits: each takes what the others leave, and never less than an equal part (`TenantMeter.share`).
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from dataplane.ingest.problems import EventRejectedError
from dataplane.tables.control import ControlTable
from dataplane.tables.quotas import IN_DATA_PLANE, Quotas, limits_of
from dataplane.tables.records import QuotaRecord, Record

BURST_S: Final = 2.0  # a bucket holds the quota of this many seconds: at the default, the largest batch
FORGET_S: Final = 300.0
LEAST_REPORTED: Final = 0.02  # of an equal part: replicas that admitted less of a tenant's quota do not report it
EVENTS, BYTES, IN_FLIGHT = "events", "bytes", "in-flight"
HTTPHeaders = list[tuple[str, str]]


class OverQuotaError(EventRejectedError):
    """The tenant's quota is exceeded: 429. `policy` names the limit, `headers` say when to retry.

    The problem follows draft-ietf-httpapi-ratelimit-headers-11: `violated-policies`, RateLimit, RateLimit-Policy.
    """

    def __init__(self, policy: str, detail: str, wait_s: float, headers: HTTPHeaders) -> None:
        wait = max(1, math.ceil(wait_s))
        super().__init__(429, "quota-exceeded", detail, retry_after_s=wait)
        self.policies, self.headers = [policy], headers


class TokenBucket:
    """Token bucket that may go into debt. When idle it is full: it holds BURST_S of its rate."""

    __slots__ = ("_at_s", "_capacity", "_rate", "level")

    def __init__(self, rate: float, now_s: float) -> None:
        self._rate = rate
        self._capacity = self.level = rate * BURST_S
        self._at_s = now_s

    def set_rate(self, rate: float, now_s: float) -> None:
        """Fill at another rate from now on."""
        self.fill(now_s)
        self._rate, self._capacity = rate, rate * BURST_S
        self.level = min(self.level, self._capacity)

    def fill(self, now_s: float) -> float:
        """Add the tokens that accrued since the last call; return the level. A hot path."""
        if now_s > self._at_s:
            level = self.level + (now_s - self._at_s) * self._rate
            self.level = level if level < self._capacity else self._capacity
        self._at_s = now_s
        return self.level

    def wait_s(self, amount: float) -> float:
        """Return the seconds until the level is `amount`, or the bucket's capacity if that is less."""
        return max(0.0, min(amount, self._capacity) - self.level) / self._rate

    def left(self) -> str:
        """Return what is left and the seconds until the bucket is full, as parameters of the RateLimit field."""
        level = self.level
        return f"r={int(level) if level > 0 else 0};t={math.ceil((self._capacity - level) / self._rate)}"

    @property
    def is_full(self) -> bool:
        """True if nothing was taken recently."""
        return self.level >= self._capacity


class TenantMeter:
    """Meter of one tenant at this replica. `taken`: events and bytes admitted since the last report to other replicas.

    A batch is admitted as far as there are tokens for its events. Bytes are charged when a body has been read, so one
    body may take the level below zero; then nothing is read until it is above zero again.
    """

    def __init__(self, quota: Quotas, now_s: float) -> None:
        self._quota = quota
        self._events = TokenBucket(quota.events_per_s, now_s)
        self._bytes = TokenBucket(quota.bytes_per_s, now_s)
        self.in_flight = 0
        self.taken = [0, 0]

    def set_quota(self, quota: Quotas) -> None:
        """Apply other limits; they take effect with the next `share`."""
        self._quota = quota

    def share(self, replicas: int, others: tuple[float, float], now_s: float) -> None:
        """Take what the other replicas leave of the limits, but at least an equal part.

        others: events and bytes a second that the other replicas admitted in the last second

        All replicas together admit no more than the limit while demand is steady; after a change of demand they admit
        up to `replicas` times as much until the next reports.
        """
        for bucket, limit, taken in (
            (self._events, self._quota.events_per_s, others[0]),
            (self._bytes, self._quota.bytes_per_s, others[1]),
        ):
            bucket.set_rate(max(limit / replicas, limit - taken), now_s)

    def check(self, now_s: float) -> None:
        """Raise OverQuotaError if nothing may be admitted now. Called before the request's body is read."""
        if self._events.fill(now_s) < 1:
            raise self._over_events(1)
        if self._bytes.fill(now_s) <= 0:
            wait_s = self._bytes.wait_s(1)
            raise self._over(BYTES, f"the quota is {self._quota.bytes_per_s} bytes per second", wait_s)

    def admit(self, events: int, now_s: float) -> int:
        """Take tokens for up to `events` events; return how many were admitted, counted from the first."""
        level = self._events.fill(now_s)
        admitted = events if level >= events else max(0, int(level))
        self._events.level -= admitted
        self.taken[0] += admitted
        return admitted

    def room(self, now_s: float) -> int:
        """Return how many events `admit` would admit now; 0 while bytes are overdrawn."""
        return max(0, int(self._events.fill(now_s))) if self._bytes.fill(now_s) > 0 else 0

    def charge(self, size_bytes: int) -> None:
        """Charge a body of this size, which has been read."""
        self._bytes.level -= size_bytes
        self.taken[1] += size_bytes

    def begin(self, size_bytes: int) -> None:
        """Count bytes of bodies that are being read or wait for Kafka.

        Raises OverQuotaError if the limit is exceeded; then they are not counted.
        """
        limit = self._quota.in_flight_bytes
        if self.in_flight + size_bytes > limit:
            raise self._over(IN_FLIGHT, f"the quota is {limit} bytes of requests at the same time", 1)
        self.in_flight += size_bytes

    def over_rest(self, rest: int) -> OverQuotaError:
        """Return the refusal of the last `rest` events of a batch."""
        return self._over_events(rest)

    def headers(self) -> HTTPHeaders:
        """Return the RateLimit-Policy and RateLimit fields: the limits, and what is left of them at this replica."""
        quota = self._quota
        window_s = int(BURST_S)
        policy = (
            f'"{EVENTS}";q={quota.events_per_s * window_s};w={window_s}, '
            f'"{BYTES}";q={quota.bytes_per_s * window_s};w={window_s};qu="content-bytes"'
        )
        return [("ratelimit-policy", policy), self.left()]

    def left(self) -> tuple[str, str]:
        """Return the RateLimit field: what is left, and the seconds until the bucket is full again."""
        return "ratelimit", f'"{EVENTS}";{self._events.left()}, "{BYTES}";{self._bytes.left()}'

    @property
    def is_idle(self) -> bool:
        """True if dropping the meter changes nothing."""
        return not self.in_flight and self._events.is_full and self._bytes.is_full

    def fill(self, now_s: float) -> None:
        """Bring both buckets up to date."""
        self._events.fill(now_s)
        self._bytes.fill(now_s)

    def reported_use(self, span_s: float, replicas: int) -> tuple[float, float] | None:
        """Return events and bytes a second since the last call, for the other replicas; None if negligible."""
        (events, size_bytes), self.taken = self.taken, [0, 0]
        rates = events / span_s, size_bytes / span_s
        least = LEAST_REPORTED / replicas
        if rates[0] < least * self._quota.events_per_s and rates[1] < least * self._quota.bytes_per_s:
            return None
        return rates

    def _over_events(self, events: int) -> OverQuotaError:
        detail = f"the quota is {self._quota.events_per_s} events per second"
        return self._over(EVENTS, detail, self._events.wait_s(events))

    def _over(self, policy: str, detail: str, wait_s: float) -> OverQuotaError:
        return OverQuotaError(policy, f"{detail}; retry later", wait_s, self.headers())


class Peers:
    """The other replicas, as their heartbeats describe them. Pure: used by TenantMeters, fed by PeerReader."""

    FRESH_S: Final = 3.5

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, Mapping[str, tuple[float, float]]]] = {}

    def on_report(self, writer: str, taken: Mapping[str, tuple[float, float]], now_s: float) -> None:
        """Note what a replica admitted of each tenant: events and bytes a second."""
        self._seen[writer] = (now_s, taken)

    def gone(self, writer: str) -> None:
        """Forget a replica that has ended."""
        self._seen.pop(writer, None)

    def live(self, now_s: float) -> int:
        """Return the number of other replicas that reported within FRESH_S."""
        self._seen = {name: seen for name, seen in self._seen.items() if now_s - seen[0] <= self.FRESH_S}
        return len(self._seen)

    def taken(self, tenant: str) -> tuple[float, float]:
        """Return the events and bytes a second of a tenant that all other replicas admitted."""
        rates = [taken[tenant] for _, taken in self._seen.values() if tenant in taken]
        return sum(events for events, _ in rates), sum(size_bytes for _, size_bytes in rates)


class InFlightBytes:
    """Bytes of one request that are in flight. A context manager: they are released when the request is answered."""

    __slots__ = ("_meters", "_size", "meter")

    def __init__(self, meters: "TenantMeters", meter: TenantMeter) -> None:
        self._meters, self.meter, self._size = meters, meter, 0

    def __enter__(self) -> "InFlightBytes":
        return self

    def __exit__(self, *_: object) -> None:
        self.meter.in_flight -= self._size
        self._meters.in_flight -= self._size

    def grow(self, size_bytes: int) -> None:
        """Count bytes that are about to be read.

        Raises EventRejectedError: 429 for the tenant's quota, 503 for the replica's limit.
        """
        meters = self._meters
        if meters.in_flight + size_bytes > meters.most_bytes:
            raise EventRejectedError(
                503, "unavailable", "too many requests are in flight; retry later", retry_after_s=1
            )
        self.meter.begin(size_bytes)
        meters.in_flight += size_bytes
        self._size += size_bytes


class TenantMeters:
    """Meters of all tenants that send to this replica. Used from one thread."""

    def __init__(
        self, table: ControlTable, defaults: Quotas, most_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Create the meters; `most_bytes` limits all request bodies that are in flight at this replica."""
        self.in_flight, self.most_bytes = 0, most_bytes
        self.clock = clock
        self.peers = Peers()
        self._table, self._defaults = table, defaults
        self._meters: dict[str, TenantMeter] = {}
        self._reported_s = clock()
        self._forget_due_s = clock() + FORGET_S
        table.on_change(self._changed)

    def of(self, tenant: str) -> TenantMeter:
        """Return the tenant's meter, and create it if there is none."""
        return self._meters.get(tenant) or self._open(tenant)

    def flight(self, tenant: str) -> InFlightBytes:
        """Return the in-flight bytes of one new request of the tenant."""
        return InFlightBytes(self, self.of(tenant))

    def quota(self, tenant: str) -> Quotas:
        """Return the limits that apply to a tenant now."""
        record = self._table.quota(tenant)
        own = {name: getattr(record, name) for name in IN_DATA_PLANE} if record is not None else {}
        return limits_of(self._defaults, own)

    def publish_use(self) -> dict[str, tuple[float, float]]:
        """Return what was admitted since the last call, by tenant, for the heartbeat."""
        now_s = self.clock()
        interval_s, replicas = max(0.1, now_s - self._reported_s), 1 + self.peers.live(now_s)
        use = {
            tenant: rates
            for tenant, meter in self._meters.items()
            if (rates := meter.reported_use(interval_s, replicas))
        }
        self._reported_s = now_s
        self._forget_idle(now_s)
        self.share_out()
        return use

    def share_out(self) -> None:
        """Give each meter its part of the limits, by the latest reports of the other replicas."""
        now_s = self.clock()
        replicas = 1 + self.peers.live(now_s)
        for tenant, meter in self._meters.items():
            meter.share(replicas, self.peers.taken(tenant), now_s)

    def _open(self, tenant: str) -> TenantMeter:
        now_s = self.clock()
        meter = self._meters[tenant] = TenantMeter(self.quota(tenant), now_s)
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
