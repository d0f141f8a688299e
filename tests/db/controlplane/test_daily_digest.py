"""Daily digest: active problems only, once a day, and no mail if there are none."""

from datetime import UTC, datetime, timedelta
from smtplib import SMTPServerDisconnected
from typing import Any

import pytest
from django.core import mail

from controlplane.observer import digest
from controlplane.observer.digest import next_digest, send_digests
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Alert, AlertChannel, Destination, Pipe, PipeRevision, Tenant, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.channels import add_active_channel
from tests.db.console.truth import Truth, go_live

pytestmark = pytest.mark.django_db
EVENING = datetime(2026, 11, 20, 21, tzinfo=UTC)
MORNING = datetime(2026, 11, 21, 7, tzinfo=UTC)


@pytest.fixture
def channel(tenant: Tenant) -> AlertChannel:
    row, _ = add_active_channel(tenant=tenant, kind="mail", target="ops@example.com")
    assert send_digests(EVENING) == 0  # the next digest is due in the morning
    return row


def alert(pipe: Pipe, **fields: Any) -> None:
    given = {"destination": "crm", "cause": "rejected", "opened_at": EVENING, "last_at": EVENING, "count": 3}
    Alert.objects.create(pipe=pipe, **given | fields)


def lose(pipe: Pipe, at: datetime) -> None:
    """Store a sealed minute in which the process lanes passed two messages without a report."""
    go_live(pipe)
    truth = Truth(pipe)
    truth.fact(bucket_at(at), "ingest", "sent", [1, 2], "acked")
    truth.passed(10)
    truth.seal(bucket_at(at), accepted=2, lost=2)


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (MORNING - timedelta(minutes=1), MORNING),
        (MORNING, MORNING + timedelta(days=1)),
        (EVENING, MORNING),
        (datetime(2026, 12, 31, 8, tzinfo=UTC), datetime(2027, 1, 1, 7, tzinfo=UTC)),
    ],
)
def test_next_digest_is_due_the_next_morning(now: datetime, due: datetime):
    assert next_digest(now) == due


def test_digest_lists_active_problems_with_links(channel: AlertChannel, pipe: Pipe):
    alert(pipe, status=401)
    alert(pipe, cause="timeout", state=Alert.State.ACKNOWLEDGED)
    Destination.objects.filter(pipe=pipe).update(state="suspended", state_cause="rejected", state_since=EVENING)
    lose(pipe, MORNING - timedelta(hours=1))
    PipeRevision.objects.filter(pipe=pipe).update(state="failed", state_reason="its topics cannot be made")
    assert send_digests(MORNING) == 1
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["ops@example.com"], "[Penstock] 5 active problems at Alice's")
    for said in (
        "orders to crm: returned 401, 3 failures since 2026-11-20 21:00 UTC\n",
        "orders to crm: timed out, 3 failures since 2026-11-20 21:00 UTC; acknowledged",
        "orders to crm: suspended since",
        "(returned 4xx, which is final); new messages are held",
        "orders: revision 1 failed: its topics cannot be made",
        "orders: 2 messages lost in the last 24 hours",
        f"/pipes/{pipe.id}/",
    ):
        assert said in sent.body


def test_no_digest_is_sent_without_active_problems(channel: AlertChannel, pipe: Pipe):
    go_live(pipe)
    alert(pipe, state=Alert.State.RESOLVED, resolved_at=EVENING)
    alert(pipe, cause="timeout", state=Alert.State.SNOOZED, snoozed_until=MORNING + timedelta(days=1))
    lose(pipe, MORNING - timedelta(days=1, minutes=1))
    assert send_digests(MORNING) == 0
    assert mail.outbox == []


def test_digest_is_sent_once_a_day(channel: AlertChannel, pipe: Pipe):
    alert(pipe)
    assert [send_digests(MORNING + timedelta(minutes=minutes)) for minutes in (0, 1, 120)] == [1, 0, 0]
    assert send_digests(MORNING + timedelta(days=1)) == 1


def test_digest_refused_by_the_mail_server_is_retried_after_an_hour(
    channel: AlertChannel, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    def away(*_: Any) -> None:
        raise SMTPServerDisconnected("gone")

    alert(pipe)
    with monkeypatch.context() as without:
        without.setattr(digest, "send_mail", away)
        assert send_digests(MORNING) == 0
    assert send_digests(MORNING + timedelta(minutes=59)) == 0
    assert send_digests(MORNING + timedelta(minutes=60)) == 1


def test_digest_claimed_by_another_worker_is_skipped(channel: AlertChannel, pipe: Pipe):
    alert(pipe)
    channel.refresh_from_db()
    assert digest._claim(channel, MORNING)
    assert not digest._claim(channel, MORNING)


def test_webhooks_and_other_tenants_get_no_digest(channel: AlertChannel, alice: User, a_spec: MakeSpec, charlie: User):
    theirs = Tenant.objects.get(name="Charlie's")
    add_active_channel(tenant=theirs, kind="mail", target="charlie@example.com")
    pipe = create_pipe(tenant=channel.tenant, name="theirs not", spec=a_spec(), author=alice)
    alert(pipe)
    send_digests(EVENING)
    assert send_digests(MORNING) == 1
    assert [sent.to for sent in mail.outbox] == [["ops@example.com"]]
