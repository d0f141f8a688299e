"""Request of a lane to insert rows, and the limits of the sender that serves it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from dataplane.spec import PostgresDestination

MAX_INSERTS: Final = 64  # batches of a lane at once
MAX_INSERT_BYTES: Final = 5 * 1024 * 1024  # rows of a batch: the largest `max_bytes` of a spec, and one row
MAX_BYTES: Final = 64 * 1024 * 1024  # rows of all batches of a lane: psycopg and libpq hold each several times
MAX_REFUSED: Final = 20  # rows of a batch refused in a row; the rest is returned, and the lane suspends the destination


class InsertRequest(Struct):
    """Rows to insert, as JSON objects, in the order of the token's messages."""

    token: Any
    to: PostgresDestination
    password: str
    rows: Sequence[bytes]
    timeout_ms: int
    tenant: str = ""
    size_bytes: int = 0


def room_for(tenant: str, begun: Iterable[InsertRequest]) -> int:
    """Return the number of batches that a tenant may begin now: it has no more, and no more bytes, than others can."""
    requests = list(begun)
    own = [request for request in requests if request.tenant == tenant]
    rest = MAX_INSERTS - len(requests)
    rest_bytes = MAX_BYTES - sum(request.size_bytes for request in requests)
    own_bytes = sum(request.size_bytes for request in own)
    return min((rest - len(own) + 1) // 2, (rest_bytes - own_bytes) // 2 // MAX_INSERT_BYTES)
