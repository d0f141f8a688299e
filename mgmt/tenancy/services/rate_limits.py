"""Rate limits of requests, counted in Postgres for all processes together.

The store is the one of accounts and sessions. While it is down nobody can sign in anyway, and no limit is decided
without it: callers get the database's error, which pages and API answer with 503 (docs/decisions/0234).
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import Final, NamedTuple

from django.db import connection

from mgmt.models import LimitCount


class TryLimit(NamedTuple):
    """At most `most` tries in a window. `name` separates the counts of different limits."""

    name: str
    most: int
    window: timedelta


class CountedTry(NamedTuple):
    """A limit and its subject: an account, an address or a tenant."""

    limit: TryLimit
    subject: str


_COUNT: Final = """
INSERT INTO mgmt_limitcount AS kept (key, count, ends_at) VALUES (%(key)s, 1, %(ends_at)s)
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN kept.ends_at <= %(now)s THEN 1 ELSE kept.count + 1 END,
    ends_at = CASE WHEN kept.ends_at <= %(now)s THEN excluded.ends_at ELSE kept.ends_at END
RETURNING count, ends_at
"""


def hit(limit: TryLimit, subject: str, now: datetime) -> int:
    """Count one try. Return 0 if it is within the limit, else the seconds until the window ends."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"key": _key(limit, subject), "ends_at": now + limit.window, "now": now})
        count, ends_at = cursor.fetchone()
    return _wait_s(ends_at, now) if count > limit.most else 0


def wait_s(counted: Sequence[CountedTry], now: datetime) -> int:
    """Return 0 if all limits permit one more try, else the seconds until they do. Counts nothing."""
    keys = {_key(*one): one.limit for one in counted}
    rows = LimitCount.objects.filter(key__in=keys, ends_at__gt=now).values_list("key", "count", "ends_at")
    return max((_wait_s(ends_at, now) for key, count, ends_at in rows if count >= keys[key].most), default=0)


def forget(limit: TryLimit, subject: str) -> None:
    """Reset the count of a subject."""
    LimitCount.objects.filter(key=_key(limit, subject)).delete()


def network_of(address: str) -> str:
    """Return the network that counts as one client: an IPv4 address itself, or the /64 of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64" if isinstance(parsed, IPv6Address) else str(parsed)


def _key(limit: TryLimit, subject: str) -> str:
    return hashlib.sha256(f"{limit.name}\0{subject}".encode()).hexdigest()


def _wait_s(ends_at: datetime, now: datetime) -> int:
    return max(1, ceil((ends_at - now).total_seconds()))
