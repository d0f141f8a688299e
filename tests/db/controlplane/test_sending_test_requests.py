"""A test request goes out as a message would, signed and through the address guard, and its answer comes back."""

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings
from standardwebhooks import Webhook

from controlplane.observer.trim import trim
from controlplane.tester import request
from controlplane.tester.send import CUT_SHORT_AFTER, give_up_on_lost, send_asked
from mgmt.models import Destination, DestinationTest, Pipe, Tenant, User
from mgmt.services import set_credential, signing_secrets
from mgmt.services.test_requests import ask_test_of_destination, ask_test_of_draft
from tests.rig.behaviours import redirected, status
from tests.rig.receiver import HANG, Receiver

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.PENSTOCK_DESTINATION_ALLOW = "127.0.0.0/8"
    listening = Receiver()
    yield listening
    listening.close()


def ask(tenant: Tenant, by: User, url: str, **config: Any) -> DestinationTest:
    spec = {"sources": {"web": {}}, "destinations": {"crm": {"type": "http", "url": url, **config}}}
    return ask_test_of_draft(
        tenant=tenant, spec=spec, destination="crm", event=b'{"order": 1}', by=by, now=datetime.now(UTC)
    )


def sent(row: DestinationTest) -> DestinationTest:
    send_asked()
    row.refresh_from_db()
    assert row.state == "done"
    return row


def saved(pipe: Pipe, url: str, **config: Any) -> Destination:
    row = pipe.destinations.get()
    row.config = row.config | {"url": url, **config}
    row.save()
    return row


def test_a_good_answer_says_delivered_and_where_the_time_went(tenant: Tenant, alice: User, receiver: Receiver):
    receiver.answers["/in"] = status(200, body=b"thanks <b>you</b>\x00")
    row = sent(ask(tenant, alice, receiver.url("/in")))
    assert (row.status, row.outcome, row.cause, row.address) == (200, "delivered", "", "127.0.0.1")
    assert row.answer == "thanks <b>you</b>."
    assert 0 < row.connect_us <= row.first_byte_us <= row.total_us
    (got,) = receiver.got["/in"]
    assert json.loads(got.body) == {"order": 1}
    assert got.headers["penstock-test"] == "1"
    assert got.headers["webhook-id"] == f"msg_{row.id}"
    assert got.headers["webhook-signature"].startswith("v1,")


def test_a_saved_destination_can_check_the_signature_and_is_signed_in_to(pipe: Pipe, alice: User, receiver: Receiver):
    destination = saved(pipe, receiver.url("/in"), auth={"type": "header", "name": "X-Api-Key"})
    set_credential(destination=destination, credential={"value": "s3cret-value"})
    receiver.answers["/in"] = status(401, body=b"not s3cret-value")
    row = ask_test_of_destination(destination=destination, event=b'{"a": 1}', by=alice, now=datetime.now(UTC))
    assert sent(row).answer == "not ***"
    (got,) = receiver.got["/in"]
    assert got.headers["x-api-key"] == "s3cret-value"
    Webhook(signing_secrets(destination=destination)[0]).verify(got.body, got.headers)


def test_without_its_credential_a_saved_destination_gets_nothing(pipe: Pipe, alice: User, receiver: Receiver):
    destination = saved(pipe, receiver.url("/in"), auth={"type": "bearer"})
    row = sent(ask_test_of_destination(destination=destination, event=b"{}", by=alice, now=datetime.now(UTC)))
    assert (row.cause, receiver.connections) == ("credential-missing", 0)


def test_a_test_request_whose_address_has_changed_since_takes_no_credential_along(
    pipe: Pipe, alice: User, receiver: Receiver
):
    destination = saved(pipe, "http://127.0.0.1:8099/", auth={"type": "bearer"})
    set_credential(destination=destination, credential={"value": "s3cret-value"})
    row = ask_test_of_destination(destination=destination, event=b"{}", by=alice, now=datetime.now(UTC))
    config = destination.config | {"url": receiver.url("/in")}
    type(row).objects.filter(id=row.id).update(url=receiver.url("/in"), config=config)
    assert (sent(row).cause, receiver.connections) == ("credential-missing", 0)


@pytest.mark.parametrize(
    ("answer", "outcome", "cause"),
    [
        (401, "dead", "rejected"),
        (410, "gone", "gone"),
        (429, "recoverable", "throttled"),
        (503, "recoverable", "server-error"),
        (redirected(302, "http://127.0.0.1:1/elsewhere"), "recoverable", "redirect"),
    ],
    ids=["401", "410", "429", "503", "302"],
)
def test_the_verdict_is_that_of_a_message(
    tenant: Tenant, alice: User, receiver: Receiver, answer: Any, outcome: str, cause: str
):
    receiver.answers["/in"] = answer
    row = sent(ask(tenant, alice, receiver.url("/in")))
    assert (row.outcome, row.cause) == (outcome, cause)
    assert receiver.connections == 1, "never followed, never tried again"


def test_the_destinations_own_rules_decide(tenant: Tenant, alice: User, receiver: Receiver):
    receiver.answers["/in"] = 409
    rules = [{"when": {"status": "409"}, "then": "delivered"}]
    assert sent(ask(tenant, alice, receiver.url("/in"), rules=rules)).outcome == "delivered"


def test_who_hangs_is_given_up_on_and_others_do_not_wait_for_it(
    tenant: Tenant, alice: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(request, "LONGEST_MS", 600)
    receiver.answers["/hangs"] = HANG
    slow, quick = ask(tenant, alice, receiver.url("/hangs")), ask(tenant, alice, receiver.url("/in"))
    assert (sent(slow).status, slow.cause) == (0, "timeout")
    assert sent(quick).outcome == "delivered"
    assert quick.total_us < slow.total_us


def test_an_endless_answer_is_cut_and_its_beginning_kept(tenant: Tenant, alice: User, receiver: Receiver):
    receiver.answers["/in"] = status(200, body=b"x" * 100_000)
    row = sent(ask(tenant, alice, receiver.url("/in")))
    assert (row.outcome, len(row.answer)) == ("delivered", 2_048)


def test_an_address_that_became_forbidden_is_never_connected_to(
    tenant: Tenant, alice: User, receiver: Receiver, settings: Settings
):
    row = ask(tenant, alice, receiver.url("/in"))
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    assert (sent(row).cause, row.status, receiver.connections) == ("destination-forbidden", 0, 0)


def test_a_name_that_leads_inside_is_refused_at_the_connect(tenant: Tenant, alice: User, settings: Settings):
    settings.PENSTOCK_DESTINATION_ALLOW = "203.0.113.0/24"  # so that names without a dot pass the text's check
    with socket.create_server(("", 0)) as canary:
        canary.settimeout(0.2)
        row = sent(ask(tenant, alice, f"http://{socket.gethostname()}:{canary.getsockname()[1]}/"))
        assert row.cause in ("destination-forbidden", "dns")
        with pytest.raises(TimeoutError):
            canary.accept()


def test_one_whose_sender_died_is_given_up_on_and_not_sent_again(tenant: Tenant, alice: User, receiver: Receiver):
    row = ask(tenant, alice, receiver.url("/in"))
    DestinationTest.objects.filter(id=row.id).update(state="sending", began_at=NOW)
    assert give_up_on_lost(NOW + CUT_SHORT_AFTER / 2) == 0
    assert give_up_on_lost(NOW + CUT_SHORT_AFTER * 2) == 1
    assert send_asked() == 0
    assert receiver.connections == 0


def test_after_a_day_it_is_forgotten(tenant: Tenant, alice: User):
    row = ask(tenant, alice, "https://crm.example.com/")
    week = timedelta(days=7)
    for age, left in ((timedelta(hours=23), 1), (timedelta(hours=25), 0)):
        trim(row.created_at + age, attempts_keep_h=72, seals_keep_d=400, ends_keep=week)
        assert DestinationTest.objects.count() == left
