"""HTTP/1.1 as load generators need it: requests to ingest, their responses, and requests to a receiver. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
REFUSAL: Final = b"HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
MOST_HEAD_BYTES: Final = 64 * 1024


class IngestTarget:
    """Address of ingest, and the API key to post with."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self.host, self.port = host, port
        self._head = f"POST /v1/events HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {key}\r\n".encode()

    @classmethod
    def of(cls, url: str, key: str) -> "IngestTarget":
        """Make the target from ingest's URL."""
        parts = urlsplit(url)
        return cls(parts.hostname or "127.0.0.1", parts.port or 80, key)

    def request(self, bodies: Sequence[bytes]) -> bytes:
        """Return the bytes of a POST: one body as JSON, several as NDJSON; each keeps its exact bytes."""
        kind, body = (b"json", bodies[0]) if len(bodies) == 1 else (b"x-ndjson", b"\n".join(bodies))
        return b"%bcontent-type: application/%b\r\ncontent-length: %d\r\n\r\n%b" % (self._head, kind, len(body), body)


class ParsedResponse(NamedTuple):
    """A complete response. `stays_open`: True if the server keeps the connection; `head` is in lower case."""

    status: int
    body: bytes
    stays_open: bool
    head: bytes


def parse_response(read: bytes) -> ParsedResponse | None:
    """Parse a response, or return None while it is incomplete. One without content-length has no body."""
    end = read.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = read[:end].lower()
    stop = end + 4 + int(header(head, head, b"content-length") or 0)
    if len(read) < stop:
        return None
    return ParsedResponse(int(head[9:12]), read[end + 4 : stop], b"connection: close" not in head, head)


def header(head: bytes, lowered: bytes, name: bytes) -> bytes:
    """Return the value of a header, or b"" if it is absent. `lowered`: the head in lower case, as `name` is."""
    at = lowered.find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else None].strip()


class ParsedRequest(NamedTuple):
    """A complete request: its head without the empty line, the same in lower case, and its body."""

    head: bytes
    lowered: bytes
    body: bytes

    @property
    def path(self) -> str:
        """Return the path of the request line."""
        return self.head.split(b" ", 2)[1].decode("latin-1")

    def header(self, name: bytes) -> bytes:
        """Return the value of a header, or b"" if it is absent. `name` is in lower case."""
        return header(self.head, self.lowered, name)


class RequestParser:
    """Splits what arrives on one connection into requests."""

    __slots__ = ("_buffer", "_continued")

    def __init__(self) -> None:
        self._buffer = b""
        self._continued = False

    def feed(self, data: bytes) -> tuple[list[ParsedRequest], bytes, bool]:
        """Return the complete requests, what to send after their responses, and True if the connection stays open."""
        buffer = self._buffer + data if self._buffer else data
        requests: list[ParsedRequest] = []
        interim = b""
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            head = buffer[:end]
            lowered = head.lower()
            length = header(head, lowered, b"content-length")
            if not length.isdigit():
                return requests, REFUSAL, False
            stop = end + 4 + int(length)
            if len(buffer) < stop:
                if not self._continued and b"\r\nexpect:" in lowered:
                    interim, self._continued = CONTINUE, True
                break
            requests.append(ParsedRequest(head, lowered, buffer[end + 4 : stop]))
            self._continued = False
            buffer = buffer[stop:]
        self._buffer = buffer
        return requests, interim, len(buffer) < MOST_HEAD_BYTES or b"\r\n\r\n" in buffer
