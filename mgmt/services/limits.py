"""Limits on how often something may be asked: counted in Postgres, for all processes together, whatever else happens.

The store is the one that accounts and sessions are in. While it is away nobody can sign in anyway, and nothing is
decided without it: callers get the database's error, which pages and API answer with 503 (docs/decisions/0234).
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import Final, NamedTuple

from django.db import connection

from mgmt.models import LimitCount


class Limit(NamedTuple):
    """So many in a window. `name` keeps the counts of different limits apart."""

    name: str
    most: int
    window: timedelta


class Counted(NamedTuple):
    """A limit, and whom it counts: an account, an address, a tenant."""

    limit: Limit
    subject: str


_COUNT: Final = """
INSERT INTO mgmt_limitcount AS kept (key, count, ends_at) VALUES (%(key)s, 1, %(ends_at)s)
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN kept.ends_at <= %(now)s THEN 1 ELSE kept.count + 1 END,
    ends_at = CASE WHEN kept.ends_at <= %(now)s THEN excluded.ends_at ELSE kept.ends_at END
RETURNING count, ends_at
"""


def hit(limit: Limit, subject: str, now: datetime) -> int:
    """Count one; return 0 if it is within the limit, else in how many seconds the window ends."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"key": _key(limit, subject), "ends_at": now + limit.window, "now": now})
        count, ends_at = cursor.fetchone()
    return _wait_s(ends_at, now) if count > limit.most else 0


def wait_s(counted: Sequence[Counted], now: datetime) -> int:
    """Return 0 if all of them may be done once more, else in how many seconds they may. Counts nothing."""
    keys = {_key(*one): one.limit for one in counted}
    rows = LimitCount.objects.filter(key__in=keys, ends_at__gt=now).values_list("key", "count", "ends_at")
    return max((_wait_s(ends_at, now) for key, count, ends_at in rows if count >= keys[key].most), default=0)


def forget(limit: Limit, subject: str) -> None:
    """Begin again at nothing."""
    LimitCount.objects.filter(key=_key(limit, subject)).delete()


def network_of(address: str) -> str:
    """Return whom an address stands for in limits: itself, or its /64, which is what one IPv6 client has."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64" if isinstance(parsed, IPv6Address) else str(parsed)


def _key(limit: Limit, subject: str) -> str:
    return hashlib.sha256(f"{limit.name}\0{subject}".encode()).hexdigest()


def _wait_s(ends_at: datetime, now: datetime) -> int:
    return max(1, ceil((ends_at - now).total_seconds()))
