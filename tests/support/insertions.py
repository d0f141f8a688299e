"""Batches for a Postgres destination, sent by its sender without a lane."""

from functools import partial
from ipaddress import ip_network
from typing import Any

import msgspec

from dataplane.spec import PostgresDestination
from dataplane.transmit.http.sender import HttpResponse
from dataplane.transmit.postgres.request import InsertRequest
from dataplane.transmit.postgres.sender import PostgresSender
from tests.support.patience import step_until
from tests.support.postgres_server import PASSWORD

LOOPBACK = (ip_network("127.0.0.0/8"),)
until = partial(step_until, limit_s=30, every_s=0.005)


def changed(to: PostgresDestination, **fields: Any) -> PostgresDestination:
    return msgspec.structs.replace(to, **fields)


def row(position: int, n: Any = 1, note: Any = "a") -> bytes:
    return msgspec.json.encode({"position": position, "child": 0, "n": n, "note": note})


def insert(
    sender: PostgresSender, to: PostgresDestination, *rows: bytes, password: str = PASSWORD, timeout_ms: int = 5_000
) -> HttpResponse:
    """Return the response to one batch."""
    sender.begin(InsertRequest("it", to, password, rows, timeout_ms))
    (answer,) = ended(sender, 1)
    return answer


def ended(sender: PostgresSender, count: int) -> list[HttpResponse]:
    found: list[HttpResponse] = []

    def have_come() -> bool:
        found.extend(sender.poll())
        return len(found) >= count

    until(have_come)
    return found
