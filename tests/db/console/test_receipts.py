"""What a sender is told who asks for a receipt that cannot be shown; and the tries that a receipt counts."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from dataplane.ledger.units import position_of
from localbox.testing import free_ports
from mgmt.console.views import receipt
from mgmt.models import Attempt, Pipe
from mgmt.queries.receipt import Failures, failures_of
from mgmt.queries.span import bucket_at, start_of
from tests.db.console.truth import Truth, go_live

pytestmark = pytest.mark.django_db
ID = "019a0000-0000-7000-8000-000000000000"


def test_who_asks_with_an_id_that_no_message_has_is_told_what_to_do(client: Client):
    page = client.get("/receipts/made-up/")
    assert (page.status_code, page["X-Robots-Tag"], page["Cache-Control"]) == (404, "noindex", "no-store")
    assert "Compare the id with the one that you were given" in page.content.decode()
    told = client.get("/receipts/made-up/", headers={"accept": "application/json"})
    assert (told.status_code, told.json()["title"]) == (404, "No message has this id")


def test_who_asks_too_often_is_told_when_to_come_again(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(receipt, "RECEIPTS", receipt.RECEIPTS._replace(most=1))
    first, second = (client.get("/receipts/made-up/", REMOTE_ADDR="203.0.113.78") for _ in range(2))
    assert (first.status_code, second.status_code, second["Retry-After"]) == (404, 429, "300")
    assert "Wait 5 minutes" in second.content.decode()


def test_while_the_brokers_are_away_nobody_is_told_that_there_is_no_message(
    client: Client, pipe: Pipe, settings: Settings
):
    go_live(pipe)
    settings.PENSTOCK_KAFKA = f"127.0.0.1:{free_ports()['PENSTOCK_KAFKA_PORT']}"
    answer = client.get(f"/receipts/{ID}/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "60")
    assert "Messages are not touched by this" in answer.content.decode()


def test_a_receipt_counts_the_tries_that_failed_and_names_the_next_only_of_what_waits(pipe: Pipe, now: datetime):
    truth, bucket = Truth(pipe), bucket_at(now)
    truth.attempt(bucket - 1, 7, "retry", status=503)
    truth.attempt(bucket, 7, "parked", status=503)
    truth.attempt(bucket + 1, 7, "delivered")
    Attempt.objects.update(message_id=ID)
    truth.attempt(bucket + 2, 7, "dead", status=400)  # of another part of the same exploded message
    last_at = start_of(bucket) + timedelta(seconds=20)

    def failures(*, waits: bool) -> Failures:
        return failures_of(pipe.id, position_of(1, 0, 7), ID, waits=waits)

    assert failures(waits=True) == Failures(2, last_at, last_at + timedelta(minutes=1))
    assert failures(waits=False) == Failures(2, last_at, None)
