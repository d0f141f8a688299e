"""Origin of the current request: the client's address and the request's id, for the entries that it writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple


class RequestOrigin(NamedTuple):
    """Address of the client and id of the request; both empty outside of a request."""

    address: str = ""
    request_id: str = ""


_CURRENT: Final[ContextVar[RequestOrigin | None]] = ContextVar("penstock_request_origin", default=None)


def current_origin() -> RequestOrigin:
    """Return the origin of the request that runs now."""
    return _CURRENT.get() or RequestOrigin()


@contextmanager
def request_from(address: str, request_id: str) -> Iterator[None]:
    """Set the origin for the time of one request."""
    token = _CURRENT.set(RequestOrigin(address, request_id))
    try:
        yield
    finally:
        _CURRENT.reset(token)
