"""Program of a customer: sends with the generated Python client, receives with it, and prints what it saw as JSON.

Arguments: URL of ingest, API key, port to receive on, signing secret; and a public key with a time
and a signature of the body `{}`, id `msg_1`. Each event is expected twice.
"""

import json
import sys
import threading
from datetime import UTC, date, datetime, time
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

from shop_events import (
    AcceptedEvent,
    BatchSender,
    EventRefusedError,
    Everything,
    InvalidValueError,
    Left,
    Money,
    Order,
    Refund,
    RefundKind,
    RefundLinesItem,
    Right,
    SenderSettings,
    SignatureInvalidError,
    State,
    TimeUuid,
    WebhookVerifier,
    decode_event,
)

INGEST, KEY, PORT, SECRET = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
VERIFIER = WebhookVerifier(SECRET)
received: dict[str, dict[str, Any]] = {}
deliveries = tampered = 0
changed = threading.Condition()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        global deliveries, tampered
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = dict(self.headers.items())
        try:
            delivery = VERIFIER.verify(headers, body)
        except SignatureInvalidError:
            self.send_response(401)
            self.end_headers()
            return
        event = decode_event(delivery)
        with changed:
            deliveries += 1
            try:
                VERIFIER.verify(headers, body + b" ")
            except SignatureInvalidError:
                tampered += 1
            received[delivery.event_id] = {"type": delivery.event_type, "json": event.to_json()}
            changed.notify_all()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def order(amount: str, currency: str = "EUR") -> Order:
    return Order(
        id=TimeUuid.now(),
        price=Money(amount=Decimal(amount), currency=currency),
        count=3,
        serial=9_007_199_254_740_993,
        state=State.PAID,
        placed_at=datetime(2026, 11, 25, 8, 0, 0, 123_457, UTC),
        tags=["a", 'b"\u2028\u00fc\U0001f600'],
    )


def everything(child: Everything | None = None) -> Everything:
    return Everything(
        nothing=None,
        flag=True,
        small=-(2**31),
        large=2**63 - 1,
        single=1.5,
        double=0.1,
        raw=b"\x00\xff",
        digest=b"abcd",
        uuid=UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        date=date(2026, 11, 25),
        timestamp_millis=datetime(2026, 11, 25, 8, 0, 0, 123_000, UTC),
        timestamp_micros=datetime(2026, 11, 25, 8, 0, 0, 123_457, UTC),
        timestamp_nanos=datetime(2026, 11, 25, 8, 0, 0, 0, UTC),
        local_timestamp_micros=datetime(2026, 11, 25, 8, 0, 0, 5),  # noqa: DTZ001 local
        time_micros=time(8, 0, 0, 1),
        time_millis=time(8, 0, 0),
        prices={"EUR": Decimal("12.50")},
        either=Right(x=1) if child else Left(x=1),
        maybe=None,
        child=child,
    )


def refund() -> Refund:
    return Refund(
        refund_id=UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        amount=12.5,
        at=datetime(2026, 11, 25, 8, 0, tzinfo=UTC),
        kind=RefundKind.PART_OF_IT,
        count=10,
        lines=[RefundLinesItem(sku="s"), RefundLinesItem()],
        extra={"a": 1},
        free={"x": [1.5, None]},
        weird_name=True,
    )


def asymmetric(key: str, sent: str, signature: str) -> list[bool]:
    """Verify a signature by ed25519, and that of another body."""
    headers = {"webhook-id": "msg_1", "webhook-timestamp": sent, "webhook-signature": f"v1,AAAA {signature}"}
    found = []
    for body in (b"{}", b"[]"):
        try:
            WebhookVerifier(key).verify(headers, body)
            found.append(True)
        except SignatureInvalidError:
            found.append(False)
    return found


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        order("1.234")
        invalid = ""
    except InvalidValueError as error:
        invalid = error.pointer
    accepted: list[AcceptedEvent] = []
    refused: list[dict[str, Any]] = []
    orders = [order("12.50"), order("9999999.99"), order("1", "eur")]
    events = [*orders, everything(everything()), refund()]
    settings = SenderSettings(first_backoff_s=0.1, max_wait_s=30)  # one batch, which `flush` sends
    with BatchSender(INGEST, KEY, source="test", settings=settings) as sender:
        results = [sender.send(event) for event in events]
        assert sender.flush(60)
        for result in results:
            try:
                accepted.append(result.result(60))
            except EventRefusedError as error:
                refused.append({"status": error.status, "code": error.code, "pointer": error.pointer})
    wanted = {one.event_id for one in accepted}
    with changed:
        changed.wait_for(lambda: wanted <= received.keys() and deliveries >= 2 * len(wanted), 60)
    server.shutdown()
    print(
        json.dumps(
            {
                "invalid": invalid,
                "ids": [str(one.id) for one in orders[:2]],
                "accepted": [one.event_id for one in accepted],
                "refused": refused,
                "deliveries": deliveries,
                "tampered": tampered,
                "asymmetric": asymmetric(*sys.argv[5:]),
                "received": received,
            }
        )
    )


if __name__ == "__main__":
    main()
