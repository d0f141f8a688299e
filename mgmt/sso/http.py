"""HTTP client for identity providers: each connection is checked by the guard of decision 0507, and all is bounded.

The check is of the address that is connected to, so a name that resolves to an internal address is refused, too. One
deadline bounds all requests of a step (`mgmt.sso.provider_steps`).
"""

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from threading import Timer
from typing import Any, Final, cast
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from dataplane.spec.guard import may_connect, parse_networks, why_forbidden
from mgmt.sso.provider_steps import provider_step, seconds_left

TIMEOUT_S: Final = 5.0  # to connect to one address, and between two reads
MOST_BYTES: Final = 1024 * 1024
MOST_ADDRESSES: Final = 3


class ForbiddenAddressError(requests.ConnectionError):
    """The host has no address to which Penstock may connect."""


class ResponseTooLargeError(requests.RequestException):
    """The response is too large."""


class GuardedSession(requests.Session):
    """Session without redirects, proxies of the environment and stored credentials."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.max_redirects = 0
        for scheme in ("http://", "https://"):
            self.mount(scheme, _GuardedAdapter())

    def get_redirect_target(self, _resp: requests.Response) -> None:
        """Return nothing. To prepare the next request, requests would read the body of a redirect without a limit."""

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request and read its response.

        Raises requests.RequestException, also for a redirect, and SsoError as `provider_step`.
        """
        text = url if isinstance(url, str) else url.decode()
        if why := why_not(text):
            raise ForbiddenAddressError(f"the URL {why}")
        with provider_step(urlsplit(text).hostname or ""):
            kwargs |= {"timeout": min(TIMEOUT_S, _seconds_left()), "stream": True, "allow_redirects": False}
            try:
                response = super().request(method, url, *args, **kwargs)
            except requests.ConnectionError as exc:
                raise (_refusal_in(exc) or exc) from exc.__cause__
            with response:
                response._content = _read(response)
                response.encoding = "utf-8"  # the provider could name a codec whose time grows with the square
        if response.is_redirect:
            raise requests.TooManyRedirects("the provider returned a redirect", response=response)
        return response


def get_json(url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at a URL. Raises requests.RequestException, ValueError, SsoError."""
    with GuardedSession() as session:
        response = session.get(url, headers={"Accept": "application/json", **(headers or {})})
    response.raise_for_status()
    return object_in(response.content)


def object_in(content: bytes) -> dict[str, Any]:
    """Return the JSON object in a response. Raises ValueError."""
    try:
        found = json.loads(content)
    except RecursionError as exc:
        raise ValueError("is nested too deeply") from exc
    if not isinstance(found, dict):
        raise ValueError("needs a JSON object")
    return found


def reason_of(exc: requests.RequestException) -> str:
    """Return why a request failed, for an owner."""
    if exc.response is not None:
        return f"it returned {exc.response.status_code}"
    if isinstance(exc, requests.exceptions.SSLError):
        return "its certificate is not valid"
    if isinstance(exc, requests.Timeout):
        return "it took too long"
    return str(exc) if type(exc).__module__ == __name__ else "the connection failed"


def why_not(url: str) -> str:
    """Return what a URL needs so that Penstock may connect to it; "" if its text gives no reason to refuse."""
    try:
        return why_forbidden(url, _allowed(), https_only=settings.PRODUCTION)
    except ValueError:
        return "needs a valid URL"


def _refusal_in(exc: BaseException | None) -> requests.RequestException | None:
    """Return the guard's error, which urllib3 and requests wrap in their own."""
    while exc is not None and not isinstance(exc, ForbiddenAddressError | requests.Timeout):
        exc = exc.__cause__ or exc.__context__
    return exc


def _allowed() -> tuple[Any, ...]:
    return parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)


def _seconds_left() -> float:
    """Return the time until the deadline of the step. Raises requests.Timeout after it."""
    if (left := seconds_left()) <= 0:
        raise requests.Timeout("the provider took too long")
    return left


def _read(response: requests.Response) -> bytes:
    parts, size = [], 0
    for part in response.iter_content(16 * 1024):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise ResponseTooLargeError("the response is too large", response=response)
        _seconds_left()
    return b"".join(parts)


def _connect(connection: HTTPConnection) -> socket.socket:
    """Connect to the first of a few permitted addresses of the host that accepts."""
    try:
        found = socket.getaddrinfo(connection._dns_host, connection.port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise ForbiddenAddressError("the host name does not resolve") from exc
    permitted = [one for one in found if may_connect(cast("str", one[4][0]), _allowed())]
    if not permitted:
        raise ForbiddenAddressError("the host has no public address")
    error: OSError | None = None
    for family, kind, protocol, _, address in permitted[:MOST_ADDRESSES]:
        left = _seconds_left()
        plug = socket.socket(family, kind, protocol)
        plug.settimeout(min(TIMEOUT_S, left))
        try:
            plug.connect(address)
        except OSError as exc:
            plug.close()
            error = exc
            continue
        return plug
    raise requests.ConnectionError("the host does not accept connections") from error


class _Guarded(HTTPConnection):
    """Connection to a permitted address that ends at the deadline, also if headers or a handshake arrive bytewise."""

    _end: Timer | None = None
    _plug: socket.socket | None = None  # a copy: TLS takes the socket's own descriptor

    def _new_conn(self) -> socket.socket:
        plug = _connect(self)
        self._plug = plug.dup()
        self._end = Timer(_seconds_left(), _shut, [self._plug])
        self._end.daemon = True
        self._end.start()
        return plug

    def close(self) -> None:
        """Close the connection and its timer."""
        if self._end is not None and self._plug is not None:
            self._end.cancel()
            self._plug.close()
            self._end = self._plug = None
        super().close()


class _GuardedHttps(_Guarded, HTTPSConnection):
    pass


def _shut(plug: socket.socket) -> None:
    with suppress(OSError):  # the other side was first
        plug.shutdown(socket.SHUT_RDWR)


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Guarded


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _GuardedHttps


class _GuardedAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        pools = {"http": _HttpPool, "https": _HttpsPool}
        self.poolmanager.pool_classes_by_scheme = pools
