"""Result of a run: compares the receiver's log with the sender's log, and both with the ledger. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, BucketAccount
from dataplane.ledger.units import format_position
from loadgen.events import ACCEPTED
from localbox.demo.logs import ReceivedDelivery, SentEvent


class DemoResult(Struct, frozen=True):
    """The line that the run prints. Counted from the two logs, except for dead and filtered, which the ledger has."""

    accepted: int
    unacked: int
    expected: int
    delivered: int
    duplicates: int
    dead: int
    filtered: int
    lost: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    events_per_s: float


class DeliveryCounts(Struct, frozen=True):
    """Content of the two logs, by position."""

    acked: dict[int, SentEvent]
    unknown: int  # POSTed events whose outcome the sender does not know
    first: dict[int, ReceivedDelivery]
    deliveries: int
    first_sent_us: int


def read_books(sent: Iterable[SentEvent], received: Iterable[ReceivedDelivery]) -> DeliveryCounts:
    """Count both logs. A position that was delivered several times is in `first` once."""
    acked: dict[int, SentEvent] = {}
    unknown, first_sent_us = 0, 0
    for line in sent:
        first_sent_us = min(first_sent_us or line.sent_us, line.sent_us)
        if line.status == ACCEPTED and line.position is not None:
            acked[line.position] = line
        unknown += line.may_be_stored
    first: dict[int, ReceivedDelivery] = {}
    deliveries = 0
    for delivery in received:
        deliveries += 1
        first.setdefault(delivery.position, delivery)
    return DeliveryCounts(acked, unknown, first, deliveries, first_sent_us)


def result_of(books: DeliveryCounts, accounts: Mapping[int, BucketAccount]) -> DemoResult:
    """Return the figures of the run."""
    acked = BitMap64(books.acked)
    delivered = acked & BitMap64(books.first)
    dead = (acked & _in_bin(accounts, Bin.DEAD)) - delivered
    filtered = (acked & _in_bin(accounts, Bin.FILTERED)) - delivered - dead
    lags_ms = sorted((books.first[p].received_us - books.acked[p].sent_us) / 1000 for p in delivered)
    last_us = max((books.first[p].received_us for p in delivered), default=0)
    took_s = (last_us - books.first_sent_us) / 1e6
    return DemoResult(
        accepted=len(acked),
        unacked=len(books.first.keys() - books.acked.keys()),
        expected=len(acked),
        delivered=len(delivered),
        duplicates=books.deliveries - len(books.first),
        dead=len(dead),
        filtered=len(filtered),
        lost=len(acked - delivered - dead - filtered),
        p50_ms=quantile(lags_ms, 0.50),
        p95_ms=quantile(lags_ms, 0.95),
        p99_ms=quantile(lags_ms, 0.99),
        events_per_s=round(len(delivered) / took_s, 1) if took_s > 0 else 0.0,
    )


def differences(books: DeliveryCounts, accounts: Mapping[int, BucketAccount], *, destination: str) -> list[str]:
    """Return all differences between the logs and the ledger, in words; empty if there are none."""
    found = _wrong_bodies(books)
    acked = _by_bucket((line.bucket, position) for position, line in books.acked.items())
    bucket_of = {p: bucket for bucket, account in accounts.items() for p in account.sent.positions()}
    received = _by_bucket((bucket_of.get(p, -1), p) for p in books.first)
    found += [f"delivered, unknown to the ledger: {_some(received[-1])}"] if received.get(-1) else []
    extra = 0
    for bucket in sorted(acked.keys() | accounts.keys()):
        account = accounts.get(bucket)
        if account is None:
            found.append(f"minute {bucket}: {len(acked[bucket])} ACKed, none in the ledger")
            continue
        extra += len(account.sent.positions() - acked[bucket])
        found += [f"minute {bucket}: {text}" for text in _minute(account, acked[bucket], received[bucket], destination)]
    if extra > books.unknown:
        found.append(
            f"the ledger has {extra} units that were never ACKed, the sender knows of {books.unknown} in doubt"
        )
    return found


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the quantile `q` of sorted values by nearest rank, rounded to 3 digits; 0 if there are none."""
    return round(ordered[min(int(q * len(ordered)), len(ordered) - 1)], 3) if ordered else 0.0


def _minute(account: BucketAccount, acked: BitMap64, received: BitMap64, destination: str) -> list[str]:
    bins = account.destinations.get(destination, {})
    delivered = bins[Bin.DELIVERED].positions() if bins else BitMap64()
    checks = [
        ("ACKed to the sender, but not in the ledger", acked - account.acked.positions()),
        ("delivered according to the receiver's log, but not the ledger", received - delivered),
        ("delivered according to the ledger, but not the receiver's log", delivered - received),
        *((f"{name} in the ledger", _bin_of(account, name)) for name in (Bin.LOST, Bin.QUEUED, Bin.RETRYING, Bin.HELD)),
        *((f"lost at {line.node}", line.lost.positions()) for line in account.nodes),
        *_arrivals(account, destination),
    ]
    return [f"{text}: {_some(positions)}" for text, positions in checks if positions]


def _arrivals(account: BucketAccount, destination: str) -> list[tuple[str, BitMap64]]:
    """Return the units that a node has not seen although they did not end before it."""
    due = account.sent.positions()
    for name in (Bin.FILTERED, Bin.DUPLICATE, Bin.DEAD, Bin.CANCELLED):
        due -= account.upstream[name].positions()
    ended = BitMap64()
    for name, units in account.destinations.get(destination, {}).items():
        ended |= units.positions() if name in (Bin.FILTERED, Bin.DEAD, Bin.CANCELLED) else BitMap64()
    return [(f"did not arrive at {line.node}", due - ended - line.arrived.positions()) for line in account.nodes]


def _bin_of(account: BucketAccount, name: Bin) -> BitMap64:
    positions = account.upstream[name].positions()
    for bins in account.destinations.values():
        positions = positions | bins[name].positions()
    return positions


def _in_bin(accounts: Mapping[int, BucketAccount], name: Bin) -> BitMap64:
    found = BitMap64()
    for account in accounts.values():
        found |= _bin_of(account, name)
    return found


def _wrong_bodies(books: DeliveryCounts) -> list[str]:
    wrong = [p for p, got in books.first.items() if p in books.acked and books.acked[p].sha256 != got.sha256]
    names = [p for p, got in books.first.items() if p in books.acked and books.acked[p].message_id != got.message_id]
    found = [f"bodies differ: {_some(BitMap64(wrong))}"] if wrong else []
    return found + ([f"ids differ: {_some(BitMap64(names))}"] if names else [])


def _by_bucket(pairs: Iterable[tuple[int, int]]) -> defaultdict[int, BitMap64]:
    grouped: defaultdict[int, list[int]] = defaultdict(list)
    for bucket, position in pairs:
        grouped[bucket].append(position)
    return defaultdict(BitMap64, {bucket: BitMap64(positions) for bucket, positions in grouped.items()})


def _some(positions: BitMap64) -> str:
    shown = ", ".join(format_position(p) for p, _ in zip(positions, range(5), strict=False))
    return f"{len(positions)} ({shown}{', ...' if len(positions) > 5 else ''})"
