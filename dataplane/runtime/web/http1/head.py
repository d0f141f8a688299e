"""Heads of requests and responses: rules of RFC 9110 and RFC 9112 beyond the grammar, which llhttp checks. Pure."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from dataplane.runtime.web.errors import HttpError

ResponseHeaders = Sequence[tuple[str, str]]
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
MAX_HEADERS: Final = 128
_VERSIONS: Final = ("1.0", "1.1")
# A proxy could read another one of several than we do (RFC 9112, 3.2 and 6).
_SINGLE: Final = frozenset(("host", "content-length", "transfer-encoding"))
_NO_BODY: Final = (204, 304)
_ABSOLUTE: Final = re.compile(rb"https?://[^/?#]+(.*)", re.IGNORECASE | re.DOTALL)
# uri-host [":" port] (RFC 9112, 3.2), which may be empty.
_NAME: Final = r"[\w.~!$&'()*+,;=%-]*"
_LITERAL: Final = r"\[(?:[0-9A-Fa-f:.]+|v[0-9A-Fa-f]+\.[\w.~!$&'()*+,;=:-]+)\]"
_HOST: Final = re.compile(rf"(?:{_NAME}|{_LITERAL})(?::\d*)?", re.ASCII)
_STATUS_LINES: Final = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n" for one in HTTPStatus}


class RequestHead(NamedTuple):
    """Head of a request. Names of headers are in lower case.

    headers:        first line of each name
    lines:          all lines, in their order
    content_length: bytes of the body; None if it is chunked
    expects:        the client waits for 100 Continue before it sends the body
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    lines: list[tuple[str, str]]
    content_length: int | None
    keep_alive: bool
    is_http10: bool
    expects: bool


def read_head(
    method: bytes, target: bytes, version: str, lines: list[tuple[str, str]], *, keep_alive: bool
) -> RequestHead:
    """Return the head of a request that llhttp has parsed in its strict mode. Raises HttpError.

    keep_alive: the client accepts further responses on the connection (RFC 9112, 9.3)
    """
    if version not in _VERSIONS:
        raise HttpError(505, f"needs HTTP/1.1 or HTTP/1.0, got HTTP/{version}")
    if method == b"CONNECT":
        raise HttpError(501, "needs another method: CONNECT is not supported")
    if len(lines) > MAX_HEADERS:
        raise HttpError(431, f"needs at most {MAX_HEADERS} headers, got {len(lines)}")
    headers: dict[str, str] = {}
    for name, value in lines:
        if name not in headers:
            headers[name] = value
        elif name in _SINGLE:
            raise HttpError(400, f"needs one header {name}, got several")
    is_http10 = version == "1.0"
    if (host := headers.get("host")) is None:
        if not is_http10:
            raise HttpError(400, "needs the header host")
    elif _HOST.fullmatch(host) is None:
        raise HttpError(400, "needs a host name or an IP address, with a port or none, in the header host")
    content_length = _content_length(headers, is_http10=is_http10)
    path, query = _split(target)
    expects = False
    if (expectation := headers.get("expect")) is not None and not is_http10:
        if expectation and expectation.lower() != "100-continue":
            raise HttpError(417, f"needs the expectation 100-continue or none, got {expectation[:40]}")
        expects = bool(expectation) and content_length != 0
    return RequestHead(method.decode(), path, query, headers, lines, content_length, keep_alive, is_http10, expects)


def _content_length(headers: dict[str, str], *, is_http10: bool) -> int | None:
    """Return the length of the body, None if it is chunked (RFC 9112, 6).

    The parser refuses a request with both headers, and a length that is not a number.
    """
    if (coding := headers.get("transfer-encoding")) is None:
        return int(headers.get("content-length", "0"))
    if is_http10:
        raise HttpError(400, "needs HTTP/1.1 for a Transfer-Encoding")
    if coding.lower() != "chunked":
        raise HttpError(501, f"needs the Transfer-Encoding chunked or none, got {coding[:40]}")
    return None


def _split(target: bytes) -> tuple[str, str]:
    """Return path and query of a request target in any of its forms (RFC 9112, 3.2)."""
    if not target.startswith(b"/") and target != b"*":
        found = _ABSOLUTE.fullmatch(target)
        if found is None:
            raise HttpError(400, "needs a path or an absolute URL as request target")
        target = found[1] if found[1].startswith(b"/") else b"/" + found[1]
    if b"#" in target:
        raise HttpError(400, "needs a request target without a fragment")
    path, _, query = target.decode("latin-1").partition("?")
    return path, query


def header_text(value: bytes) -> str:
    """Return the value of a header. RFC 9110, 5.5, leaves bytes beyond ASCII open: they are UTF-8, else Latin-1."""
    try:
        return value.decode().strip(" \t")
    except UnicodeDecodeError:
        return value.decode("latin-1").strip(" \t")


def response_head(
    status: int, headers: ResponseHeaders, length: int, date: str, *, keep_alive: bool, is_http10: bool
) -> bytes:
    """Return the head of a response with a body of `length` bytes. Raises ValueError for a value with a line break.

    date: the header Date (RFC 9110, 6.6.1)
    """
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} \r\n"]
    for name, value in headers:
        if "\r" in value or "\n" in value:
            raise ValueError(f"header {name} has a line break")
        lines.append(f"{name}: {value}\r\n")
    if status not in _NO_BODY:
        lines.append(f"content-length: {length}\r\n")
    if not keep_alive:
        lines.append("connection: close\r\n")
    elif is_http10:
        lines.append("connection: keep-alive\r\n")
    lines.append(f"date: {date}\r\n\r\n")
    return "".join(lines).encode()


def has_body(method: str, status: int) -> bool:
    """Return whether a response has a body (RFC 9110, 6.4.1)."""
    return method != "HEAD" and status not in _NO_BODY
