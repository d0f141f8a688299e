"""Forward the events of a pipe to a local server, at least once: the position is stored after each 2xx."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from dataplane.spec.header_text import percent_encoded
from dataplane.transmit.http.signature import SYMMETRIC_PREFIX, sign, signer
from penstock_cli.connection import Connection
from penstock_cli.errors import CliError, ExitCode
from penstock_cli.profiles import write_private
from penstock_client.api.operations import list_events
from penstock_client.types import UNSET

IDLE_S: Final = 1.0
LONGEST_WAIT_S: Final = 30.0
PAGE: Final = 100
LOCAL_TIMEOUT_S: Final = 30.0
CLOCKS_APART: Final = timedelta(seconds=10)  # between the clocks of ingest and of the brokers


class ListenPosition:
    """Stored position of a listener: cursor, start, and the events after the cursor that were delivered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        found = _read(path)
        self.cursor = str(found.get("cursor", ""))
        self.since = datetime.fromisoformat(found["since"]) if found.get("since") else None
        self.delivered: set[str] = set(found.get("delivered", ()))

    @property
    def is_new(self) -> bool:
        """True if nothing is stored yet."""
        return not self.cursor and self.since is None

    def start(self, since: datetime) -> None:
        """Store the time from which to read until there is a cursor."""
        self.since = since
        self._save()

    def deliver(self, event_id: str) -> None:
        """Store that an event after the cursor was delivered."""
        self.delivered.add(event_id)
        self._save()

    def move(self, cursor: str) -> None:
        """Store the cursor after the events of a page, all of which were delivered."""
        if cursor != self.cursor or self.delivered:
            self.cursor, self.delivered = cursor, set()
            self._save()

    def _save(self) -> None:
        since = self.since.isoformat() if self.since else ""
        found = {"cursor": self.cursor, "since": since, "delivered": sorted(self.delivered)}
        write_private(self._path, json.dumps(found) + "\n")


def position_file(folder: Path, *parts: str) -> Path:
    """Return the file with the position of a listener, which its installation, pipe, source and target identify."""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return folder / "positions" / f"{digest}.json"


def signature(secret: str, event_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the `webhook-signature` of Standard Webhooks, as Penstock signs deliveries. Raises CliError."""
    try:
        if not secret.startswith(SYMMETRIC_PREFIX):
            raise ValueError
        return sign([signer(secret)], event_id, timestamp_s, body)
    except ValueError as exc:
        raise CliError("the signing secret is not valid", hint="It begins with whsec_; copy it again.") from exc


class Attempt(NamedTuple):
    """Result of one request to the local server. status: 0 without a response; error: why there is none."""

    status: int
    took_ms: float
    error: str = ""

    @property
    def is_delivered(self) -> bool:
        """True after a 2xx."""
        return 200 <= self.status < 300


class LocalServer:
    """The server that receives the events. secret: signing secret of Standard Webhooks; empty: no signature."""

    def __init__(self, url: str, secret: str = "") -> None:
        self._url, self._secret = url, secret
        self._http = httpx.Client(timeout=LOCAL_TIMEOUT_S)

    def post(self, event: Any, now_s: int) -> Attempt:
        """Send an event once."""
        body = event.body.encode()
        headers = {"content-type": "application/json", **event.headers.to_dict()}
        headers = {name: percent_encoded(text.encode()) for name, text in headers.items()}  # as a delivery has them
        headers |= {"webhook-id": event.id, "webhook-timestamp": str(now_s), "penstock-source": event.source}
        if self._secret:
            headers["webhook-signature"] = signature(self._secret, event.id, now_s, body)
        started_s = time.monotonic()
        try:
            status, error = self._http.post(self._url, content=body, headers=headers).status_code, ""
        except httpx.TransportError as exc:
            status, error = 0, str(exc) or type(exc).__name__
        return Attempt(status, (time.monotonic() - started_s) * 1_000, error)


class ListenReport(NamedTuple):
    """Callbacks of a listener: after each request to the local server, and for lines about the connection."""

    attempt: Callable[[Any, Attempt, int], None]
    note: Callable[[str], None]


class Listener:
    """Reads the events of a pipe after a stored position and forwards each until the local server accepts it."""

    def __init__(
        self,
        connection: Connection,
        server: LocalServer,
        position: ListenPosition,
        report: ListenReport,
        *,
        pipe: str,
        source: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection, self._server, self._position, self._report = connection, server, position, report
        self._pipe, self._source, self._sleep = pipe, source, sleep

    def run(self) -> None:
        """Forward events until the process is ended. Raises CliError if the API refuses the request."""
        while True:
            page = self._next_page()
            self.forward(page)
            if not page.more and not page.results:
                self._sleep(IDLE_S)

    def forward(self, page: Any) -> None:
        """Deliver the events of a page in order, then store its cursor."""
        if page.gap:
            self._report.note("some events after the stored position are no longer kept and were missed")
        if self._position.is_new and page.results:  # begin there again if this process ends within the page
            self._position.start(page.results[0].accepted_at - CLOCKS_APART)
        for event in page.results:
            if event.id not in self._position.delivered:
                self._deliver(event)
                self._position.deliver(event.id)
        self._position.move(page.cursor)

    def _deliver(self, event: Any) -> None:
        if event.body is None:
            self._report.note(f"{event.id}: not forwarded, as the pipe masks fields of it and it is not JSON")
            return
        for number, wait_s in enumerate(backoff_s(), 1):
            attempt = self._server.post(event, int(time.time()))
            self._report.attempt(event, attempt, number)
            if attempt.is_delivered:
                return
            self._sleep(wait_s)

    def _next_page(self) -> Any:
        is_lost = False
        for wait_s in backoff_s():
            try:
                page = self._connection.call(
                    list_events.sync_detailed,
                    self._pipe,
                    after=self._position.cursor or UNSET,
                    since=UNSET if self._position.cursor or self._position.since is None else self._position.since,
                    source=self._source or UNSET,
                    limit=PAGE,
                )
            except CliError as exc:
                if exc.code != ExitCode.UNAVAILABLE:
                    raise
                self._report.note(f"connection lost: {exc} Next try in {wait_s:g} s.")
                is_lost = True
                self._sleep(wait_s)
                continue
            if is_lost:
                self._report.note("connected again")
            return page
        raise AssertionError("the backoff never ends")


def backoff_s() -> Iterator[float]:
    """Yield the seconds to wait after each failure, without end."""
    wait_s = 0.5
    while True:
        yield wait_s
        wait_s = min(wait_s * 2, LONGEST_WAIT_S)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as exc:
        raise CliError(f"{path}: cannot be read: {exc}", hint="Remove the file, or use --reset.") from exc
    return found if isinstance(found, dict) else {}
