"""A test request is sent like a message, signed and through the address guard; its response is stored."""

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings
from standardwebhooks import Webhook

from controlplane.delivery_test import request, send
from controlplane.delivery_test.send import CUT_SHORT_AFTER, give_up_on_lost, send_requested
from controlplane.observer.trim import trim
from dataplane.schemas.types import SchemaType
from dataplane.spec.loops import parse_endpoints
from loadgen.scripted import Receiver, status
from mgmt.delivery_tests.services import request_destination_test, request_draft_test
from mgmt.models import Destination, DestinationTest, Pipe, Tenant, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import register_version, set_credential, signing_secrets
from tests.support.behaviours import hang, redirected

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.PENSTOCK_DESTINATION_ALLOW = "127.0.0.0/8"
    listening = Receiver()
    yield listening
    listening.close()


def ask(tenant: Tenant, by: User, url: str, event: bytes = b'{"order": 1}', **config: Any) -> DestinationTest:
    spec = {"sources": {"web": {}}, "destinations": {"crm": {"type": "http", "url": url, **config}}}
    return request_draft_test(tenant=tenant, spec=spec, destination="crm", event=event, by=by, now=datetime.now(UTC))


def sent(row: DestinationTest) -> DestinationTest:
    send_requested()
    row.refresh_from_db()
    assert row.state == "done"
    return row


def saved(pipe: Pipe, url: str, **config: Any) -> Destination:
    row = pipe.destinations.get()
    row.config = row.config | {"url": url, **config}
    row.save()
    return row


def test_successful_response_is_delivered_with_its_timings(tenant: Tenant, alice: User, receiver: Receiver):
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


@pytest.mark.parametrize(("event", "is_sent"), [(b'{"order": 1}', True), (b'{"order": "one"}', False)])
def test_destination_with_an_encoding_gets_avro_and_a_misfit_is_not_sent(
    tenant: Tenant, alice: User, receiver: Receiver, event: bytes, is_sent: bool
):
    schema = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "order", "type": "long"}]})
    draft = SchemaDraft(SchemaType.AVRO, schema)
    register_version(tenant=tenant, subject="orders", draft=draft, author=alice)
    encoding = {"format": "confluent", "subject": "orders", "version": 1}
    row = sent(ask(tenant, alice, receiver.url("/in"), event, encoding=encoding))
    if not is_sent:
        assert (row.outcome, row.cause, receiver.connections) == ("dead", "schema", 0)
        assert row.reason == "schema: orders@1: /order: needs long, got a text"
        return
    (got,) = receiver.got["/in"]
    assert (got.body, row.outcome) == (b"\x00\x00\x00\x00\x01\x02", "delivered")
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["penstock-schema"] == "orders@1"


def test_saved_destination_gets_its_credential_and_a_verifiable_signature(pipe: Pipe, alice: User, receiver: Receiver):
    destination = saved(pipe, receiver.url("/in"), auth={"type": "header", "name": "X-Api-Key"})
    set_credential(destination=destination, credential={"value": "s3cret-value"})
    receiver.answers["/in"] = status(401, body=b"not s3cret-value")
    row = request_destination_test(destination=destination, event=b'{"a": 1}', by=alice, now=datetime.now(UTC))
    assert sent(row).answer == "not ***"
    (got,) = receiver.got["/in"]
    assert got.headers["x-api-key"] == "s3cret-value"
    Webhook(signing_secrets(destination=destination)[0]).verify(got.body, got.headers)


def test_saved_destination_without_its_credential_gets_no_request(pipe: Pipe, alice: User, receiver: Receiver):
    destination = saved(pipe, receiver.url("/in"), auth={"type": "bearer"})
    row = sent(request_destination_test(destination=destination, event=b"{}", by=alice, now=datetime.now(UTC)))
    assert (row.cause, receiver.connections) == ("credential-missing", 0)


def test_test_request_with_an_address_changed_since_carries_no_credential(pipe: Pipe, alice: User, receiver: Receiver):
    destination = saved(pipe, "http://127.0.0.1:8099/", auth={"type": "bearer"})
    set_credential(destination=destination, credential={"value": "s3cret-value"})
    row = request_destination_test(destination=destination, event=b"{}", by=alice, now=datetime.now(UTC))
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
def test_outcome_is_that_of_a_message(
    tenant: Tenant, alice: User, receiver: Receiver, answer: Any, outcome: str, cause: str
):
    receiver.answers["/in"] = answer
    row = sent(ask(tenant, alice, receiver.url("/in")))
    assert (row.outcome, row.cause) == (outcome, cause)
    assert receiver.connections == 1, "redirects are not followed and nothing is retried"


def test_rules_of_the_destination_decide_the_outcome(tenant: Tenant, alice: User, receiver: Receiver):
    receiver.answers["/in"] = 409
    rules = [{"when": {"status": "409"}, "then": "delivered"}]
    assert sent(ask(tenant, alice, receiver.url("/in"), rules=rules)).outcome == "delivered"


def test_request_to_our_own_ingest_is_a_loop(tenant: Tenant, alice: User, receiver: Receiver, settings: Settings):
    row = ask(tenant, alice, receiver.url("/in"))
    settings.PENSTOCK_OWN_INGEST = parse_endpoints(receiver.url(""))
    assert (sent(row).outcome, row.cause, receiver.got["/in"]) == ("dead", "loop-detected", [])


def test_hanging_receiver_times_out_and_delays_no_other_request(
    tenant: Tenant, alice: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(request, "LONGEST_MS", 600)
    receiver.answers["/hangs"] = hang
    slow, quick = ask(tenant, alice, receiver.url("/hangs")), ask(tenant, alice, receiver.url("/in"))
    assert (sent(slow).status, slow.cause) == (0, "timeout")
    assert sent(quick).outcome == "delivered"
    assert quick.total_us < slow.total_us


def test_endless_response_is_truncated_and_its_beginning_kept(tenant: Tenant, alice: User, receiver: Receiver):
    receiver.answers["/in"] = status(200, body=b"x" * 100_000)
    row = sent(ask(tenant, alice, receiver.url("/in")))
    assert (row.outcome, len(row.answer)) == ("delivered", 2_048)


def test_address_forbidden_since_the_request_is_never_connected_to(
    tenant: Tenant, alice: User, receiver: Receiver, settings: Settings
):
    row = ask(tenant, alice, receiver.url("/in"))
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    assert (sent(row).cause, row.status, receiver.connections) == ("destination-forbidden", 0, 0)


def test_name_with_an_internal_address_is_refused_at_connect(tenant: Tenant, alice: User, settings: Settings):
    settings.PENSTOCK_DESTINATION_ALLOW = "203.0.113.0/24"  # so that names without a dot pass the textual check
    with socket.create_server(("", 0)) as canary:
        canary.settimeout(0.2)
        row = sent(ask(tenant, alice, f"http://{socket.gethostname()}:{canary.getsockname()[1]}/"))
        assert row.cause in ("destination-forbidden", "dns")
        with pytest.raises(TimeoutError):
            canary.accept()


def test_request_of_a_dead_sender_is_abandoned_and_not_sent_again(tenant: Tenant, alice: User, receiver: Receiver):
    row = ask(tenant, alice, receiver.url("/in"))
    DestinationTest.objects.filter(id=row.id).update(state="sending", began_at=NOW)
    assert give_up_on_lost(NOW + CUT_SHORT_AFTER / 2) == 0
    assert give_up_on_lost(NOW + CUT_SHORT_AFTER * 2) == 1
    assert send_requested() == 0
    assert receiver.connections == 0


def test_request_that_another_worker_has_claimed_is_not_sent(tenant: Tenant, alice: User):
    row = ask(tenant, alice, "https://crm.example.com/")
    assert send._claim(row, NOW)
    assert not send._claim(row, NOW), "both workers have read the row before one claims it"


def test_test_request_is_deleted_after_a_day(tenant: Tenant, alice: User):
    row = ask(tenant, alice, "https://crm.example.com/")
    week = timedelta(days=7)
    for age, left in ((timedelta(hours=23), 1), (timedelta(hours=25), 0)):
        trim(row.created_at + age, attempts_keep_h=72, seals_keep_d=400, ends_keep=week)
        assert DestinationTest.objects.count() == left
