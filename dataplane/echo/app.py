"""The echo as an ASGI application: it returns 200 to a signed POST and stores nothing."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from dataplane.runtime.telemetry.metrics_registry import MetricReading
from dataplane.runtime.web.asgi import (
    PLAIN_TEXT,
    AsgiHeaders,
    BodyReader,
    BodyRefusedError,
    BodyRule,
    ByteBudget,
    Receive,
    Scope,
    Send,
    answer,
    read_body,
)
from dataplane.runtime.web.errors import ClientGoneError

PATH: Final = "/echo/"
BODY: Final = BodyRule(1024 * 1024)
HELD_BYTES: Final = 64 * 1024 * 1024
STATUSES: Final = (200, 401, 404, 405, 408, 413, 503)  # each is exported as a metric before its first response
SIGNATURE_HEADERS: Final = (b"webhook-id", b"webhook-timestamp", b"webhook-signature")


class Echo:
    """Receives deliveries. It has no database, no thread and no queue: a request that it cannot take now gets 503."""

    def __init__(self) -> None:
        self._budget = ByteBudget(HELD_BYTES)
        self.answers = Counter(dict.fromkeys(STATUSES, 0))
        self.active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        self.active += 1
        try:
            if scope["path"] in ("/livez", "/readyz"):
                await answer(send, 200, [PLAIN_TEXT], b"ok\n")
                return
            status, text = await self._judge(scope, receive)
            self.answers[status] += 1
            await answer(send, status, _headers_of(status), f"{text}\n".encode())
        except ClientGoneError:
            pass
        finally:
            self.active -= 1

    def readings(self) -> Iterator[MetricReading]:
        """Yield the number of responses by status."""
        for status, count in self.answers.copy().items():
            yield MetricReading("penstock_echo_answers_total", count, (str(status),))

    async def _judge(self, scope: Scope, receive: Receive) -> tuple[int, str]:
        """Return status and text: 401 without signature headers, whose values the echo has no secret to check."""
        if scope["path"] != PATH:
            return 404, f"Not found. Send deliveries to POST {PATH}."
        if scope["method"] != "POST":
            return 405, "Method not allowed. The echo takes POST."
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if not all(headers.get(name) for name in SIGNATURE_HEADERS):
            names = ", ".join(name.decode() for name in SIGNATURE_HEADERS)
            return 401, f"Missing signature. The echo takes signed requests only: {names}."
        try:
            body = await read_body(BodyReader(scope["headers"], receive, BODY), self._budget)
        except BodyRefusedError as exc:
            return exc.status, str(exc)
        self._budget.give_back(len(body))
        return 200, "Received. Nothing is stored."


def _headers_of(status: int) -> AsgiHeaders:
    headers = [PLAIN_TEXT]
    if status == 405:
        headers.append((b"allow", b"POST"))
    if status == 503:
        headers.append((b"retry-after", b"2"))
    if status in (408, 413, 503):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    return headers
