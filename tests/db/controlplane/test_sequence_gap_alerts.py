"""The alert `sequence-gap` names the numbers of a key that have not arrived, and resolves when they do."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse

from controlplane.observer.notices import send_due
from controlplane.observer.sequence_breaks import save_breaks
from controlplane.observer.sequence_gaps import MOST_LISTED, SequenceGapPolicy, watch_sequence_gaps
from dataplane.ledger.sequence_breaks import SequenceBreak
from dataplane.ledger.units import position_of
from mgmt.alerts.services.alerts import NOTIFY_AFTER
from mgmt.models import Alert, Pipe, SequenceBreakRow, Tenant, User
from mgmt.services import close_pipe, publish_revision
from tests.db.channels import add_active_channel

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POLICY = SequenceGapPolicy()


def gap(pipe: Pipe, offset: int = 1, *, missing: int = 3, ago_min: float = 6) -> None:
    at_us = int((NOON - timedelta(minutes=ago_min)).timestamp()) * 1_000_000
    position, ranges = position_of(1, 0, offset), [(41, 40 + missing)] if missing else []
    save_breaks(
        [
            SequenceBreak(
                pipe.id, 1, "shop", "pump-7", "gap", at_us // 60_000_000, position, at_us, False, 44, 40, ranges
            )
        ]
    )


def test_gap_that_stays_open_is_named_and_sent_to_the_tenants_channels(
    pipe: Pipe, tenant: Tenant, alice: User, client: Client, mailoutbox: list[EmailMessage]
):
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    gap(pipe)
    assert watch_sequence_gaps(NOON, POLICY) == 1
    assert watch_sequence_gaps(NOON, POLICY) == 1
    alert = Alert.objects.get()
    assert (alert.cause, alert.pipe, alert.destination, alert.count) == ("sequence-gap", pipe, "", 1)
    assert alert.figures == {
        "window_min": 60,
        "more": 0,
        "gaps": [
            {
                "source": "shop", "key": "pump-7", "summary": "expected 41, received 44", "missing": 3,
                "missing_numbers": "41 to 43", "previous": "40", "number": "44", "position": "1-0-1",
                "bucket": 29_454_474, "at": "2026-01-01T11:54:00+00:00",
            }
        ],
    }  # fmt: skip
    send_due(NOON + NOTIFY_AFTER)
    (mail,) = mailoutbox
    assert mail.subject == "[Penstock] Events of orders are missing"
    for text in ("expected 41, received 44; missing: 41 to 43", "key: pump-7, source: shop"):
        assert text in str(mail.body)
    client.force_login(alice)
    page = client.get(reverse("console:alert", args=[pipe.id, alert.id])).content.decode()
    shown = ("Expected 41, received 44", "41 to 43", "pump-7", "Most gaps at once", "has not received these numbers")
    for text in shown:
        assert text in page
    assert "Latest failure" not in page
    assert "both leave gaps" in client.get(reverse("console:cause", args=["sequence-gap"])).content.decode()


def test_number_that_is_late_for_less_than_five_minutes_opens_no_alert(pipe: Pipe):
    gap(pipe, ago_min=4)
    gap(pipe, 2, missing=0)
    gap(pipe, 3, ago_min=61)
    assert watch_sequence_gaps(NOON, POLICY) == 0
    assert not Alert.objects.exists()


def test_alert_resolves_when_the_missing_numbers_arrive(pipe: Pipe):
    gap(pipe)
    gap(pipe, 2)
    assert watch_sequence_gaps(NOON, POLICY) == 1
    gap(pipe, missing=0)
    assert watch_sequence_gaps(NOON, POLICY) == 1
    assert Alert.objects.get().details["gaps"][0]["position"] == "1-0-2"
    gap(pipe, 2, missing=0)
    assert watch_sequence_gaps(NOON, POLICY) == 0
    alert = Alert.objects.get()
    assert (alert.state, alert.resolution) == ("resolved", "all missing numbers have arrived")


def test_alert_that_ends_by_age_says_that_numbers_are_still_missing(pipe: Pipe):
    gap(pipe)
    assert watch_sequence_gaps(NOON, POLICY) == 1
    assert watch_sequence_gaps(NOON + timedelta(minutes=55), POLICY) == 0
    assert Alert.objects.get().resolution == "no new gap for 60 minutes; numbers are still missing"


def test_alert_lasts_while_a_younger_gap_is_open_and_a_gap_that_is_not_tracked_opens_none(pipe: Pipe):
    gap(pipe)
    watch_sequence_gaps(NOON, POLICY)
    gap(pipe, missing=0)
    gap(pipe, 2, ago_min=2)
    assert watch_sequence_gaps(NOON, POLICY) == 0
    assert Alert.objects.get().state == "opened"
    SequenceBreakRow.objects.filter(missing__gt=0).update(is_tracked=False)
    watch_sequence_gaps(NOON, POLICY)
    assert Alert.objects.get().resolution == "all missing numbers have arrived"


def test_alert_of_a_closed_pipe_is_resolved(pipe: Pipe):
    gap(pipe)
    watch_sequence_gaps(NOON, POLICY)
    close_pipe(pipe=pipe)
    assert watch_sequence_gaps(NOON, POLICY) == 0
    assert Alert.objects.get().resolution == "the pipe is closed"


def test_alert_lists_the_newest_gaps(pipe: Pipe):
    for number in range(MOST_LISTED + 2):
        gap(pipe, number, ago_min=30 - number)
    watch_sequence_gaps(NOON, POLICY)
    alert = Alert.objects.get()
    assert (alert.count, len(alert.details["gaps"]), alert.details["more"]) == (MOST_LISTED + 2, MOST_LISTED, 2)
    assert alert.details["gaps"][0]["position"] == f"1-0-{MOST_LISTED + 1}"


def test_key_that_the_pipe_masks_is_masked_in_the_alert(pipe: Pipe, alice: User):
    spec: dict[str, Any] = pipe.revisions.get().spec
    spec["sources"]["shop"] |= {"key": "device", "sequence": "seq"}
    mask = {"op": "mask", "path": "device", "how": "redact"}
    publish_revision(pipe=pipe, spec=spec | {"normalize": [mask]}, based_on=1, author=alice)
    gap(pipe)
    watch_sequence_gaps(NOON, POLICY)
    assert Alert.objects.get().details["gaps"][0]["key"] == "***"
