"""Receipts: the response to a sender if none can be shown, and the attempts that a receipt counts."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from dataplane.ledger.units import position_of
from localbox.testing import free_ports
from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.messages.pages import receipt
from mgmt.messages.queries.receipt import DeliveryFailures, failures_of
from mgmt.models import DeliveryAttempt, Pipe
from tests.db.console.truth import Truth, go_live

pytestmark = pytest.mark.django_db
ID = "019a0000-0000-7000-8000-000000000000"


def test_unknown_message_id_returns_404_with_instructions(client: Client):
    page = client.get("/receipts/made-up/")
    assert (page.status_code, page["X-Robots-Tag"], page["Cache-Control"]) == (404, "noindex", "no-store")
    assert "Compare the id with the one in the 202" in page.content.decode()
    told = client.get("/receipts/made-up/", headers={"accept": "application/json"})
    assert (told.status_code, told.json()["title"]) == (404, "Message not found")


def test_throttled_receipt_request_returns_429_with_retry_after(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(receipt, "RECEIPTS", receipt.RECEIPTS._replace(most=1))
    first, second = (client.get("/receipts/made-up/", REMOTE_ADDR="203.0.113.78") for _ in range(2))
    assert (first.status_code, second.status_code, second["Retry-After"]) == (404, 429, "300")
    assert "Wait 5 minutes" in second.content.decode()


def test_receipt_during_a_kafka_outage_returns_503_and_not_404(client: Client, pipe: Pipe, settings: Settings):
    go_live(pipe)
    settings.PENSTOCK_KAFKA = f"127.0.0.1:{free_ports()['PENSTOCK_KAFKA_PORT']}"
    answer = client.get(f"/receipts/{ID}/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "60")
    assert "Messages are not affected" in answer.content.decode()


def test_receipt_counts_failed_attempts_and_gives_the_next_only_for_a_waiting_message(pipe: Pipe, now: datetime):
    truth, bucket = Truth(pipe), bucket_at(now)
    truth.attempt(bucket - 1, 7, "retry", status=503)
    truth.attempt(bucket, 7, "parked", status=503)
    truth.attempt(bucket + 1, 7, "delivered")
    DeliveryAttempt.objects.update(message_id=ID)
    truth.attempt(bucket + 2, 7, "dead", status=400)  # of another child of the same exploded message
    last_at = start_of(bucket) + timedelta(seconds=20)

    def failures(*, waits: bool) -> DeliveryFailures:
        return failures_of(pipe.id, position_of(1, 0, 7), ID, waits=waits)

    assert failures(waits=True) == DeliveryFailures(2, last_at, last_at + timedelta(minutes=1))
    assert failures(waits=False) == DeliveryFailures(2, last_at, None)
