"""HTTP sender: all transfers of a lane on one libcurl multi handle and thread; handles and connections are reused."""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pycurl
from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.causes import Cause
from dataplane.spec.guard import Network, may_connect
from dataplane.spec.loops import Endpoint, is_own, is_own_url
from dataplane.transmit.policy.delivery_verdict import LOOP, DeliveryOutcome, DeliveryVerdict

log = logging.getLogger(__name__)

MAX_TRANSFERS: Final = 512
NO_HEADERS: Final = ("Expect:",)  # libcurl sends none for it
MAX_ANSWER_BYTES: Final = 16 * 1024  # of the body, and separately of the headers: beyond it the transfer is ended
KEPT_AS: Final = 8  # idle handles kept per identity
MOST_IDENTITIES: Final = 64  # with idle handles; those of the one used longest ago are closed
HEADER_INVALID: Final = DeliveryVerdict(DeliveryOutcome.DEAD, Cause.HEADER_INVALID)
REQUEST_INVALID: Final = DeliveryVerdict(DeliveryOutcome.DEAD, Cause.REQUEST_INVALID)
NOT_BEGUN: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.TRANSPORT)
HOST_ERRORS: Final = (OSError, MemoryError, KafkaException)  # not caused by a message: the lane ends and is restarted
KEPT_BYTES: Final = 4 * 1024  # of the body: twice what is shown, so that a secret is masked before the text is cut


class HttpPolicy(Struct, frozen=True):
    """Settings of every transfer.

    allowed:    networks that may be connected to although they are not public
    https_only: refuse plain HTTP
    ca_file:    file of trusted CAs, "" for the system's
    own:        endpoints of Penstock's own ingest, to which nothing is sent
    """

    allowed: tuple[Network, ...] = ()
    https_only: bool = False
    ca_file: str = ""
    own: frozenset[Endpoint] = frozenset()


class ClientIdentity(Struct, frozen=True):
    """Client certificate and its key, as PEM text, for mutual TLS."""

    certificate: str
    key: str


class AwsKey(Struct, frozen=True):
    """Access key that signs requests to S3-compatible stores (AWS Signature Version 4)."""

    region: str
    access_key_id: str
    secret: str


RequestIdentity = ClientIdentity | AwsKey | None


class HttpRequest(Struct):
    """One request with a body. `keep_bytes` of the response's body are returned with the response."""

    token: Any
    url: str
    headers: list[str]
    body: bytes
    timeout_ms: int
    keep_bytes: int = KEPT_BYTES
    identity: RequestIdentity = None
    method: str = "POST"


class ResponsePart(Struct, frozen=True):
    """Outcome of the messages `start` to `end` (exclusive) of a batch."""

    start: int
    end: int
    verdict: DeliveryVerdict
    message: str = ""


class HttpResponse(Struct):
    """Result of one transfer; times are microseconds since it began.

    status:      HTTP status, 0 if no answer came
    curl_code:   libcurl's error code, 0 if the transfer succeeded
    forbidden:   the address guard refused the connection
    body:        the first `keep_bytes` of the answer's body
    retry_after: value of the Retry-After header, "" if there was none
    verdict:     set if there is no HTTP answer to judge
    parts:       outcomes of the parts of a batch, if they differ
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
    verdict: DeliveryVerdict | None = None
    parts: Sequence[ResponsePart] = ()


class _Lent(socket.socket):
    """Socket for libcurl, which works on a duplicate of the descriptor; ours is closed when it is released."""

    def __del__(self) -> None:
        self.close()


class _Transfer:
    """One reusable easy handle and its current request. Its client identity, or the lack of one, never changes."""

    def __init__(self, policy: HttpPolicy, identity: RequestIdentity) -> None:
        self.curl = pycurl.Curl()
        self.identity = identity
        self.token: Any = None
        self.forbidden = self.is_loop = False
        self.retry_after = ""
        self._allowed, self._own = policy.allowed, policy.own
        self._keep = self._read = 0
        self._read_at_most = self._header_room = MAX_ANSWER_BYTES
        self._kept: list[bytes] = []
        self._url = ""
        self._timeout_ms = -1
        self._method = "POST"
        curl = self.curl
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.NOPROXY, "*")
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTPS | (0 if policy.https_only else pycurl.PROTO_HTTP))
        curl.setopt(pycurl.TCP_NODELAY, 1)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        curl.setopt(pycurl.WRITEFUNCTION, self._write)
        curl.setopt(pycurl.HEADERFUNCTION, self._header)
        if policy.ca_file:
            curl.setopt(pycurl.CAINFO, policy.ca_file)
        match identity:
            case ClientIdentity(certificate, key):
                curl.setopt(pycurl.SSLCERT_BLOB, certificate.encode())
                curl.setopt(pycurl.SSLKEY_BLOB, key.encode())
            case AwsKey(region, access_key_id, secret):
                curl.setopt(pycurl.AWS_SIGV4, f"aws:amz:{region}:s3")
                curl.setopt(pycurl.USERNAME, access_key_id)
                curl.setopt(pycurl.PASSWORD, secret)

    @property
    def kept(self) -> bytes:
        """Beginning of the response's body."""
        return b"".join(self._kept)[: self._keep] if self._kept else b""

    def begin(self, request: HttpRequest) -> None:
        self.token, self.forbidden, self.retry_after = request.token, False, ""
        self.is_loop = False
        self._keep, self._read, self._header_room = request.keep_bytes, 0, MAX_ANSWER_BYTES
        self._read_at_most = max(MAX_ANSWER_BYTES, request.keep_bytes)
        if self._kept:
            self._kept = []
        curl = self.curl
        if request.url != self._url:
            self._url = request.url
            curl.setopt(pycurl.URL, request.url.encode())  # as bytes: pycurl rejects text that is not ASCII
        if request.timeout_ms != self._timeout_ms:
            self._timeout_ms = request.timeout_ms
            curl.setopt(pycurl.TIMEOUT_MS, max(1, request.timeout_ms))  # 0 would mean no timeout
        if request.method != self._method:
            self._method = request.method
            curl.setopt(pycurl.CUSTOMREQUEST, request.method)
        # An empty list would leave the headers of the last request, which may be of another tenant.
        curl.setopt(pycurl.HTTPHEADER, request.headers or NO_HEADERS)
        curl.setopt(pycurl.POSTFIELDS, request.body)

    def forget_bodies(self) -> None:
        """Release the bodies of the last request and response, which an idle handle would keep."""
        self.curl.setopt(pycurl.POSTFIELDS, b"")
        self._kept = []

    def _open(self, purpose: int, address: Any) -> Any:  # noqa: ARG002 (libcurl's signature)
        """Check every address before it is connected to, including IP literals and rebound DNS names."""
        host, port = address.addr[:2]
        if self._own and (is_own(host, port, self._own) or is_own_url(self._url, self._own)):
            self.is_loop = True
            return pycurl.SOCKET_BAD
        if not may_connect(host, self._allowed):
            self.forbidden = True
            return pycurl.SOCKET_BAD
        return _Lent(address.family, address.socktype, address.protocol)

    def _write(self, data: bytes) -> int:
        """Keep the beginning of the answer. Beyond the limit the transfer is ended, and its status counts."""
        if self._read < self._keep:
            self._kept.append(data)
        self._read += len(data)
        return len(data) if self._read <= self._read_at_most else 0

    def _header(self, line: bytes) -> int | None:
        """Store Retry-After, because libcurl's own value is capped at six hours. A hot path: called for each line.

        None accepts the line; beyond the limit the transfer is ended, and its status counts.
        """
        if line[0] in b"Rr" and line[:12].lower() == b"retry-after:":
            self.retry_after = line[12:].decode("latin-1").strip()
        self._header_room = room = self._header_room - len(line)
        return None if room >= 0 else 0


class HttpSender:
    """Sender of up to MAX_TRANSFERS requests at once: `begin` starts one, `poll` yields those that ended."""

    def __init__(self, policy: HttpPolicy) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, MAX_TRANSFERS)
        self._policy = policy
        self._free: list[_Transfer] = []
        self._free_as: dict[ClientIdentity | AwsKey, list[_Transfer]] = {}
        self._busy: dict[pycurl.Curl, _Transfer] = {}
        self._refused: list[HttpResponse] = []
        # Returns True to read address and times of a successful answer, too: this costs a tenth of a send.
        self.wants_details: Callable[[Any], bool] = lambda _token: True

    @property
    def active(self) -> int:
        """Number of transfers in flight, including refused ones that `poll` has not yielded yet."""
        return len(self._busy) + len(self._refused)

    @property
    def room(self) -> int:
        """Number of transfers that may begin now."""
        return MAX_TRANSFERS - len(self._busy)

    def begin(self, request: HttpRequest) -> None:
        """Start a request. `poll` yields a response with its token even if it cannot be sent.

        Raises only HOST_ERRORS, because one message must not end the lane.
        """
        if not are_safe(request.headers):
            self._refuse(request, HEADER_INVALID, "a header contains a line break or other forbidden characters")
            return
        try:
            self._begin(request)
        except pycurl.error as exc:  # an error of libcurl itself, such as no memory
            self._refuse(request, NOT_BEGUN, str(exc))
        except HOST_ERRORS:
            raise
        except Exception as exc:
            log.exception("could not start a request")
            self._refuse(request, REQUEST_INVALID, type(exc).__name__)

    def _begin(self, request: HttpRequest) -> None:
        free = self._free if request.identity is None else self._free_as.get(request.identity)
        transfer = free.pop() if free else _Transfer(self._policy, request.identity)
        try:
            transfer.begin(request)
            self._busy[transfer.curl] = transfer  # first: no request that is refused may be sent
            self._multi.add_handle(transfer.curl)
        except Exception:
            self._busy.pop(transfer.curl, None)
            transfer.curl.close()
            raise

    def _refuse(self, request: HttpRequest, verdict: DeliveryVerdict, message: str) -> None:
        self._refused.append(HttpResponse(request.token, 0, 0, message, "", False, verdict=verdict))

    def poll(self, wait_s: float) -> Iterator[HttpResponse]:
        """Transfer bytes, wait up to `wait_s` for activity, and yield the response of every transfer that ended."""
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
            transfer = self._busy[curl]
            status, total_us = curl.getinfo(pycurl.RESPONSE_CODE), curl.getinfo(pycurl.TOTAL_TIME_T)
            answer = HttpResponse(transfer.token, status, code, message, "", transfer.forbidden, total_us=total_us)
            answer.body, answer.retry_after = transfer.kept, transfer.retry_after
            answer.verdict = LOOP if transfer.is_loop else None
            if code or not 200 <= status < 300 or self.wants_details(transfer.token):
                _add_details(answer, curl)
            self._end(transfer)
            yield answer

    def cancel(self, wanted: Callable[[Any], bool]) -> list[Any]:
        """Cancel the transfers whose tokens `wanted` selects; return those tokens."""
        ended = [transfer for transfer in self._busy.values() if wanted(transfer.token)]
        tokens = [transfer.token for transfer in ended]
        for transfer in ended:
            self._end(transfer)
        tokens += [answer.token for answer in self._refused if wanted(answer.token)]
        self._refused = [answer for answer in self._refused if not wanted(answer.token)]
        return tokens

    def cancel_all(self) -> list[Any]:
        """Cancel every transfer; return their tokens."""
        return self.cancel(lambda _token: True)

    def close(self) -> None:
        """Cancel every transfer and close every connection."""
        self.cancel_all()
        for transfer in [*self._free, *(idle for pool in self._free_as.values() for idle in pool)]:
            transfer.curl.close()
        self._multi.close()

    def _end(self, transfer: _Transfer) -> None:
        """Return the handle to its pool. Few are kept per identity, because there may be many of them."""
        self._multi.remove_handle(transfer.curl)
        del self._busy[transfer.curl]
        transfer.token = None
        if transfer.identity is None:
            self._free.append(transfer)
            return
        transfer.forget_bodies()
        kept = self._free_as.pop(transfer.identity, [])
        self._free_as[transfer.identity] = kept  # the last one again
        if len(kept) < KEPT_AS:
            kept.append(transfer)
        else:
            transfer.curl.close()
        while len(self._free_as) > MOST_IDENTITIES:
            for idle in self._free_as.pop(next(iter(self._free_as))):
                idle.curl.close()

    def _ended(self) -> list[tuple[Any, int, str]]:
        ended: list[tuple[Any, int, str]] = []
        more = 1
        while more:
            more, succeeded, failed = self._multi.info_read()
            ended += [(curl, 0, "") for curl in succeeded]
            ended += [(curl, code, message) for curl, code, message in failed]
        return ended


def are_safe(headers: Sequence[str]) -> bool:
    """Return True if each line is exactly one header. A hot path.

    libcurl sends lines unchecked, so that a line break could smuggle a second request.
    """
    text = "\n".join(headers)
    is_plain = text.isascii() and "\r" not in text and "\0" not in text
    return is_plain and text.count("\n") == max(len(headers) - 1, 0)


def _add_details(answer: HttpResponse, curl: Any) -> None:
    info = curl.getinfo
    answer.address = info(pycurl.PRIMARY_IP)
    answer.dns_us = info(pycurl.NAMELOOKUP_TIME_T)
    answer.connect_us = info(pycurl.CONNECT_TIME_T)
    answer.tls_us = info(pycurl.APPCONNECT_TIME_T)
    answer.first_byte_us = info(pycurl.STARTTRANSFER_TIME_T)
