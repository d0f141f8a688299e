"""Request of a lane to insert rows, and the limits of the sender that serves it."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from dataplane.spec import PostgresDestination

MAX_INSERTS: Final = 64  # batches of a lane at once
MAX_REFUSED: Final = 20  # rows of a batch refused in a row; the rest is returned, and the lane suspends the destination


class InsertRequest(Struct):
    """Rows to insert, as JSON objects, in the order of the token's messages."""

    token: Any
    to: PostgresDestination
    password: str
    rows: Sequence[bytes]
    timeout_ms: int
