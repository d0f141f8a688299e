"""The sender: every transfer of a lane on one libcurl multi handle, one thread; handles and connections are reused."""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pycurl
from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.spec.guard import Network, may_connect
from dataplane.spec.loops import Endpoint, is_own, is_own_url
from dataplane.transmit.verdict import LOOP, Outcome, Verdict

log = logging.getLogger(__name__)

MAX_TRANSFERS: Final = 512
MAX_ANSWER_BYTES: Final = 16 * 1024  # of the body, and as much again of headers: then the transfer is ended
KEPT_AS: Final = 8  # idle handles of one identity
HEADER_INVALID: Final = Verdict(Outcome.DEAD, "header-invalid")
REQUEST_INVALID: Final = Verdict(Outcome.DEAD, "request-invalid")
NOT_BEGUN: Final = Verdict(Outcome.RECOVERABLE, "transport")
HOST_ERRORS: Final = (OSError, MemoryError, KafkaException)  # no message is to blame: the lane ends and starts again
KEPT_BYTES: Final = 4 * 1024  # of the body: twice what is shown, so that a secret is masked before it is cut


class Ground(Struct, frozen=True):
    """What holds for every transfer. `ca_file`: whom to trust, "" for whom the host trusts.

    own: where our own ingest is: nothing is ever sent there
    """

    allowed: tuple[Network, ...] = ()
    https_only: bool = False
    ca_file: str = ""
    own: frozenset[Endpoint] = frozenset()


class Identity(Struct, frozen=True):
    """A certificate and its key, as PEM text, that we show to a receiver."""

    certificate: str
    key: str


class Post(Struct):
    """What to send where, as whom. `keep_bytes` of the answer's body come back with it."""

    token: Any
    url: str
    headers: list[str]
    body: bytes
    timeout_ms: int
    keep_bytes: int = KEPT_BYTES
    identity: Identity | None = None


class Answer(Struct):
    """What came of one transfer; times in microseconds since it began, `curl_code` 0 if it went well.

    body: as much of it as was to be kept; retry_after: that header's value, "" if there was none
    verdict: where it needs no judge, because there was no HTTP
    """

    token: Any
    status: int
    curl_code: int
    message: str
    address: str
    forbidden: bool
    dns_us: int = 0
    connect_us: int = 0
    tls_us: int = 0
    first_byte_us: int = 0
    total_us: int = 0
    body: bytes = b""
    retry_after: str = ""
    verdict: Verdict | None = None


class _Lent(socket.socket):
    """libcurl works on a copy of its descriptor; ours is closed as soon as it is let go."""

    def __del__(self) -> None:
        self.close()


class _Transfer:
    """One reusable easy handle and what it is busy with. It shows one identity all its life, or none."""

    def __init__(self, ground: Ground, identity: Identity | None) -> None:
        self.curl = pycurl.Curl()
        self.identity = identity
        self.token: Any = None
        self.forbidden = self.is_loop = False
        self.retry_after = ""
        self._allowed, self._own = ground.allowed, ground.own
        self._keep = self._read = self._read_headers = 0
        self._read_at_most = MAX_ANSWER_BYTES
        self._kept: list[bytes] = []
        self._url = ""
        self._timeout_ms = -1
        curl = self.curl
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.NOPROXY, "*")
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTPS | (0 if ground.https_only else pycurl.PROTO_HTTP))
        curl.setopt(pycurl.TCP_NODELAY, 1)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        curl.setopt(pycurl.WRITEFUNCTION, self._write)
        curl.setopt(pycurl.HEADERFUNCTION, self._header)
        if ground.ca_file:
            curl.setopt(pycurl.CAINFO, ground.ca_file)
        if identity is not None:
            curl.setopt(pycurl.SSLCERT_BLOB, identity.certificate.encode())
            curl.setopt(pycurl.SSLKEY_BLOB, identity.key.encode())
        curl.transfer = self

    @property
    def kept(self) -> bytes:
        """What was kept of the answer's body."""
        return b"".join(self._kept)[: self._keep] if self._kept else b""

    def begin(self, post: Post) -> None:
        self.token, self.forbidden, self.retry_after = post.token, False, ""
        self.is_loop = False
        self._keep, self._read, self._read_headers = post.keep_bytes, 0, 0
        self._read_at_most = max(MAX_ANSWER_BYTES, post.keep_bytes)
        if self._kept:
            self._kept = []
        curl = self.curl
        if post.url != self._url:
            self._url = post.url
            curl.setopt(pycurl.URL, post.url.encode())  # text that is not ASCII would be an error
        if post.timeout_ms != self._timeout_ms:
            self._timeout_ms = post.timeout_ms
            curl.setopt(pycurl.TIMEOUT_MS, max(1, post.timeout_ms))  # libcurl takes 0 for no timeout at all
        curl.setopt(pycurl.HTTPHEADER, post.headers)
        curl.setopt(pycurl.POSTFIELDS, post.body)

    def _open(self, purpose: int, address: Any) -> Any:  # noqa: ARG002 (libcurl's signature)
        """Sees every address before the connection is made: literals, rebound names and all."""
        host, port = address.addr[:2]
        if self._own and (is_own(host, port, self._own) or is_own_url(self._url, self._own)):
            self.is_loop = True
            return pycurl.SOCKET_BAD
        if not may_connect(host, self._allowed):
            self.forbidden = True
            return pycurl.SOCKET_BAD
        return _Lent(address.family, address.socktype, address.protocol)

    def _write(self, data: bytes) -> int:
        """Keep the beginning of the answer; past the cap the transfer is ended, the status counts."""
        if self._read < self._keep:
            self._kept.append(data)
        self._read += len(data)
        return len(data) if self._read <= self._read_at_most else 0

    def _header(self, line: bytes) -> int:
        """Note Retry-After. libcurl's own notion of it is capped at six hours."""
        if line[:1] in b"rR" and line[:12].lower() == b"retry-after:":
            self.retry_after = line[12:].decode("latin-1").strip()
        self._read_headers += len(line)
        return len(line) if self._read_headers <= MAX_ANSWER_BYTES else 0


class Sender:
    """Up to MAX_TRANSFERS POSTs at once. `begin` starts one, `turn` yields what ended."""

    def __init__(self, ground: Ground) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, MAX_TRANSFERS)
        self._ground = ground
        self._free: list[_Transfer] = []
        self._free_as: dict[Identity, list[_Transfer]] = {}
        self._busy: set[_Transfer] = set()
        self._refused: list[Answer] = []
        self.tell_all = True  # address and times of good answers, too: asking for them costs a tenth of a send

    @property
    def active(self) -> int:
        """How many are under way, those included whose answer is that they could not begin."""
        return len(self._busy) + len(self._refused)

    @property
    def room(self) -> int:
        """How many more may begin."""
        return MAX_TRANSFERS - len(self._busy)

    def begin(self, post: Post) -> None:
        """Start it. Its token comes back in an Answer, also if it cannot be sent: one message ends no lane."""
        if not are_safe(post.headers):
            self._refuse(post, HEADER_INVALID, "a header of it would be read as something else")
            return
        try:
            self._begin(post)
        except pycurl.error as exc:  # libcurl's own trouble, such as no memory
            self._refuse(post, NOT_BEGUN, str(exc))
        except HOST_ERRORS:
            raise
        except Exception as exc:
            log.exception("a request could not be begun")
            self._refuse(post, REQUEST_INVALID, type(exc).__name__)

    def _begin(self, post: Post) -> None:
        free = self._free if post.identity is None else self._free_as.get(post.identity)
        transfer = free.pop() if free else _Transfer(self._ground, post.identity)
        try:
            transfer.begin(post)
            self._multi.add_handle(transfer.curl)
        except Exception:
            transfer.curl.close()
            raise
        self._busy.add(transfer)

    def _refuse(self, post: Post, verdict: Verdict, message: str) -> None:
        self._refused.append(Answer(post.token, 0, 0, message, "", False, verdict=verdict))

    def turn(self, wait_s: float) -> Iterator[Answer]:
        """Move bytes, waiting up to `wait_s` for some to move; yield every transfer that ended."""
        refused, self._refused = self._refused, []
        yield from refused
        if not self._busy:
            return
        self._multi.perform()
        ended = self._ended()
        if not ended and wait_s:
            self._multi.select(wait_s)
            self._multi.perform()
            ended = self._ended()
        for curl, code, message in ended:
            transfer: _Transfer = curl.transfer
            status, total_us = curl.getinfo(pycurl.RESPONSE_CODE), curl.getinfo(pycurl.TOTAL_TIME_T)
            answer = Answer(transfer.token, status, code, message, "", transfer.forbidden, total_us=total_us)
            answer.body, answer.retry_after = transfer.kept, transfer.retry_after
            answer.verdict = LOOP if transfer.is_loop else None
            if self.tell_all or code or not 200 <= status < 300:
                _add_details(answer, curl)
            self._end(transfer)
            yield answer

    def cancel(self, wanted: Callable[[Any], bool]) -> list[Any]:
        """Break off the transfers whose tokens are wanted; returns these."""
        ended = [transfer for transfer in self._busy if wanted(transfer.token)]
        tokens = [transfer.token for transfer in ended]
        for transfer in ended:
            self._end(transfer)
        tokens += [answer.token for answer in self._refused if wanted(answer.token)]
        self._refused = [answer for answer in self._refused if not wanted(answer.token)]
        return tokens

    def cancel_all(self) -> list[Any]:
        """Break off every transfer; returns their tokens."""
        return self.cancel(lambda _token: True)

    def close(self) -> None:
        """End every transfer and connection."""
        self.cancel_all()
        for transfer in [*self._free, *(one for some in self._free_as.values() for one in some)]:
            transfer.curl.close()
        self._multi.close()

    def _end(self, transfer: _Transfer) -> None:
        """Put the handle back. Of one identity only a few are kept: there may be many identities."""
        self._multi.remove_handle(transfer.curl)
        self._busy.discard(transfer)
        transfer.token = None
        if transfer.identity is None:
            self._free.append(transfer)
            return
        kept = self._free_as.setdefault(transfer.identity, [])
        if len(kept) < KEPT_AS:
            kept.append(transfer)
        else:
            transfer.curl.close()

    def _ended(self) -> list[tuple[Any, int, str]]:
        ended: list[tuple[Any, int, str]] = []
        more = 1
        while more:
            more, well, failed = self._multi.info_read()
            ended += [(curl, 0, "") for curl in well]
            ended += [(curl, code, message) for curl, code, message in failed]
        return ended


def are_safe(headers: Sequence[str]) -> bool:
    """Return whether each line is one header: libcurl sends what it is given, a second request included. A hot path."""
    text = "\n".join(headers)
    is_plain = text.isascii() and "\r" not in text and "\0" not in text
    return is_plain and text.count("\n") == max(len(headers) - 1, 0)


def _add_details(answer: Answer, curl: Any) -> None:
    info = curl.getinfo
    answer.address = info(pycurl.PRIMARY_IP)
    answer.dns_us = info(pycurl.NAMELOOKUP_TIME_T)
    answer.connect_us = info(pycurl.CONNECT_TIME_T)
    answer.tls_us = info(pycurl.APPCONNECT_TIME_T)
    answer.first_byte_us = info(pycurl.STARTTRANSFER_TIME_T)
