"""The page of an alert about a hot partition shows its figures and cures it in one click."""

from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from dataplane.causes import Cause
from mgmt.alerts.services.alerts import AlertReport, report_condition
from mgmt.models import Alert, Cell, ControlAction, Pipe, PipeMigration, Tenant, User
from mgmt.services import OrderNeededError, UnchangedError, adopt_live_spec, create_pipe, spread_keys
from mgmt.templatetags.figures import count
from tests.db.console.truth import BrowserOf, go_live
from tests.support.hot_partition import DETAILS

CRM = {"type": "http", "url": "https://crm.example.com/in"}


SOURCES = {"shop": {"key": "customer"}, "web": {}}


def hot(tenant: Tenant, author: User, now: datetime, *, sources: dict[str, Any] = SOURCES, **destination: Any) -> Alert:
    """Return the alert of a live pipe with a key, a source without one, and one destination."""
    spec = {"sources": sources, "destinations": {"crm": CRM | destination}}
    pipe = create_pipe(tenant=tenant, name="orders by customer", spec=spec, author=author)
    go_live(pipe)
    report_condition(report=AlertReport(pipe.id, "", Cause.HOT_PARTITION, 9_000, DETAILS, {}), now=now)
    return Alert.objects.get()


def url_of(name: str, alert: Alert) -> str:
    return reverse(f"console:{name}", args=[alert.pipe_id, alert.id])


@pytest.fixture
def alert(tenant: Tenant, alice: User, now: datetime) -> Alert:
    return hot(tenant, alice, now)


def test_page_shows_partition_share_key_and_lag(alices: Client, alert: Alert):
    page = alices.get(url_of("alert", alert)).content.decode()
    for text in ("One partition receives too many events", "Partition 1", "70 % of the events; even: 25 %", "Key acme",
                 "86 % of the partition", "Most messages waiting on the partition", "Spread the keys"):  # fmt: skip
        assert text in page
    assert "Latest failure" not in page
    assert "Move to its own cell" not in page
    assert f"{count(9_000)} messages" in alices.get(reverse("console:alerts")).content.decode()
    assert "read by one process" in alices.get(reverse("console:cause", args=["hot-partition"])).content.decode()


def test_spread_the_keys_publishes_a_revision_that_takes_all_keys_at_once_and_a_revert_undoes_it(
    alices: Client, alert: Alert, alice: User
):
    page = alices.post(url_of("spread_keys", alert), follow=True).content.decode()
    assert "Revision 2 spreads the keys over all partitions" in page
    revision = alert.pipe.revisions.latest("number")
    assert (revision.number, revision.author, revision.at_once) == (2, alice, True)
    assert revision.spec["sources"]["shop"]["spread_key"] is True
    assert "spread_key" not in revision.spec["sources"]["web"]
    assert "are spread already" in alices.post(url_of("spread_keys", alert), follow=True).content.decode()
    type(revision).objects.filter(pk=revision.pk).update(state="ramping")
    revision.refresh_from_db()
    adopt_live_spec(revision=revision)
    alices.post(reverse("console:revert_revision", args=[alert.pipe_id, 1]))
    assert "spread_key" not in alert.pipe.revisions.latest("number").spec["sources"]["shop"]


def test_api_publishes_the_revision_that_the_button_publishes(alices: Client, alert: Alert, alice: User):
    path = f"/api/v1/pipes/{alert.pipe_id}/spread-keys/"
    answer = alices.post(path)
    revision = alert.pipe.revisions.latest("number")
    assert (answer.status_code, answer.json()["number"], answer.json()["at_once"]) == (201, 2, True)
    assert answer["Location"] == f"/api/v1/pipes/{alert.pipe_id}/revisions/2/"
    assert (revision.number, revision.author, revision.spec) == (2, alice, answer.json()["spec"])
    assert revision.spec["sources"]["shop"]["spread_key"] is True
    again = alices.post(path)
    assert (again.status_code, again.json()["code"]) == (409, "unchanged")
    assert alert.pipe.revisions.count() == 2


def test_api_refuses_to_spread_the_keys_of_an_ordered_destination(
    alices: Client, tenant: Tenant, alice: User, now: datetime
):
    alert = hot(tenant, alice, now, ordered=True)
    answer = alices.post(f"/api/v1/pipes/{alert.pipe_id}/spread-keys/")
    assert (answer.status_code, answer.json()["code"]) == (409, "order-needed")
    assert "crm keeps the order" in answer.json()["detail"]
    assert alert.pipe.revisions.count() == 1


def test_keys_of_an_ordered_destination_are_not_spread_and_the_page_says_why(
    alices: Client, tenant: Tenant, alice: User, now: datetime
):
    alert = hot(tenant, alice, now, ordered=True)
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "crm keeps the order of each key" in page
    assert ">Spread the keys<" not in page
    assert "crm keeps the order" in alices.post(url_of("spread_keys", alert), follow=True).content.decode()
    with pytest.raises(OrderNeededError):
        spread_keys(pipe=alert.pipe, by=alice)
    assert alert.pipe.revisions.count() == 1


def test_keys_of_a_sequence_are_not_spread_and_the_page_says_why(
    alices: Client, tenant: Tenant, alice: User, now: datetime
):
    alert = hot(tenant, alice, now, sources={"shop": {"key": "customer", "sequence": "number"}})
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "the sequence of source shop needs the order of each key" in page
    assert ">Spread the keys<" not in page
    with pytest.raises(OrderNeededError):
        spread_keys(pipe=alert.pipe, by=alice)


def test_pipe_without_keys_has_none_to_spread(pipe: Pipe, alice: User):
    with pytest.raises(UnchangedError):
        spread_keys(pipe=pipe, by=alice)


def test_only_editors_spread_keys_and_only_staff_move_pipes(
    browser_of: BrowserOf, alices: Client, viewer: User, charlie: User, alert: Alert
):
    vera = browser_of(viewer)
    assert ">Spread the keys<" not in vera.get(url_of("alert", alert)).content.decode()
    assert vera.post(url_of("spread_keys", alert)).status_code == 403
    assert browser_of(charlie).post(url_of("spread_keys", alert)).status_code == 404
    for browser in (alices, vera, browser_of(charlie)):
        assert browser.post(url_of("move_to_own_cell", alert)).status_code == 404
    assert alert.pipe.revisions.count() == 1
    assert not PipeMigration.objects.exists()


def test_staff_move_the_pipe_to_a_cell_of_its_own(alices: Client, alert: Alert, alice: User):
    User.objects.filter(id=alice.id).update(is_staff=True)
    assert "Move to its own cell" in alices.get(url_of("alert", alert)).content.decode()
    page = alices.post(url_of("move_to_own_cell", alert), follow=True).content.decode()
    assert "Migration to a cell of its own requested" in page
    asked = PipeMigration.objects.get()
    assert (asked.pipe, asked.source_id, asked.target_id, asked.by) == (alert.pipe, "c1", "own1", alice)
    assert Cell.objects.get(id="own1").dedicated_to == alert.pipe.tenant
    assert set(ControlAction.objects.values_list("action", flat=True)) >= {"add-cell", "keep-cell", "move-pipe"}
    page = alices.post(url_of("move_to_own_cell", alert), follow=True).content.decode()
    assert "is already being migrated to own1" in page
    assert list(Cell.objects.order_by("id").values_list("id", flat=True)) == ["c1", "own1"]


def test_free_cell_of_the_tenant_is_used_before_one_is_added(alices: Client, alert: Alert, alice: User):
    User.objects.filter(id=alice.id).update(is_staff=True)
    Cell.objects.create(id="c7", dedicated_to=alert.pipe.tenant)
    alices.post(url_of("move_to_own_cell", alert))
    assert PipeMigration.objects.get().target_id == "c7"
