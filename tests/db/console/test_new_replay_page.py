"""Form of a new replay: what it offers, errors at their fields, review, start, and the links that lead to it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Destination, Pipe, PipeRevision, Replay, Tenant, TenantQuota, User
from mgmt.services import create_pipe, pause_pipe, publish_revision
from tests.db.cast import MakeSpec
from tests.db.console.replays import MakeReplay, ended, form_of, new_of, page_of, text_of
from tests.db.console.truth import BrowserOf, Truth, go_live, plain

pytestmark = pytest.mark.django_db
FORM = 18


def test_form_offers_the_last_hour_and_every_destination_that_can_be_replayed_to(
    alices: Client, live: Pipe, alice: User
):
    spec = live.revisions.get().spec
    spec["destinations"] |= {
        "books": {"type": "http", "url": "https://books.example.com/in"}, "feed": {"type": "topic"},
        "lake": {"type": "lake"},
    }  # fmt: skip
    publish_revision(pipe=live, spec=spec, based_on=1, author=alice)
    go_live(live)
    live.revisions.update(published_offset=7)
    PipeRevision.objects.filter(pipe=live, number=1).update(state="retired")
    Destination.objects.filter(pipe=live, name="books").update(state="paused")
    answer = alices.get(new_of(live))
    form = answer.context["form"]
    assert [(one.name, one.why_not) for one in form.options.destinations] == [
        ("crm", ""),
        ("feed", ""),
        ("lake", "a lake: recompute its table instead"),
        ("books", "paused: resume it first"),
    ]
    assert form.selected() == ["crm", "feed"]
    since, until = (datetime.fromisoformat(form.initial[name]) for name in ("since", "until"))
    assert until - since == timedelta(hours=1)
    assert form.fields["revision"].choices == [("live", "live, now @2"), ("2", "@2, live"), ("1", "@1, retired")]


def test_link_fills_in_times_destination_and_ids(alices: Client, live: Pipe, now: datetime):
    tomorrow = (now + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    query = {"from": "2026-07-01T08:00", "to": "2026-07-01T09:00", "destination": "crm", "ids": "a,b"}
    form = alices.get(new_of(live), query).context["form"]
    assert form.initial["since"] == "2026-07-01T08:00"
    assert form.initial["until"] == "2026-07-01T09:00"
    assert (form.selected(), form.initial["ids"]) == (["crm"], "a\nb")
    form = alices.get(new_of(live), {"from": "soon", "to": tomorrow, "destination": "none"}).context["form"]
    assert datetime.fromisoformat(form.initial["until"]) <= timezone.now().replace(tzinfo=None)
    form = alices.get(new_of(live), {"to": "0001-01-01T00:00"}).context["form"]
    assert datetime.fromisoformat(form.initial["until"]).year >= 2026
    assert form.selected() == ["crm"]


def test_settings_of_an_earlier_replay_fill_in_the_form(
    alices: Client, make_replay: MakeReplay, live: Pipe, now: datetime
):
    row = make_replay(
        **ended(now, rehearsal=True), where="body.n > 1", keys=["a", "b"], ids=["x"],
        until=datetime(2026, 11, 26, 20, 0, 0, 1, tzinfo=UTC),
    )  # fmt: skip
    initial = alices.get(new_of(live), {"like": row.id}).context["form"].initial
    assert initial == {
        "since": "2026-11-26T08:00", "until": "2026-11-26T20:00:01", "destinations": ["crm"], "revision": 1,
        "where": "body.n > 1", "keys": "a\nb", "ids": "x", "rate_per_s": "50",
    }  # fmt: skip


def test_replay_of_another_pipe_fills_in_nothing(
    alices: Client, make_replay: MakeReplay, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    row = make_replay()
    other = create_pipe(tenant=tenant, name="other", spec=a_spec(), author=alice)
    assert alices.get(new_of(other), {"like": row.id}).status_code == 404


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"since": ""}, "since", "Enter a date and a time."),
        ({"until": "yesterday"}, "until", "Enter a date and a time."),
        ({"until": "2026-07-01T08:00"}, "until", "Select an end after the start."),
        ({"until": "2999-07-01T08:00"}, "until", "Select an end in the past"),
        ({"since": "2026-06-01T08:00"}, "since", "Select at most 7 days."),
        ({"destinations": []}, "destinations", "Select at least one destination."),
        ({"destinations": ["lake"]}, "destinations", "lake is not one of the available choices"),
        ({"revision": "9"}, "revision", "9 is not one of the available choices"),
        ({"where": "body.order.total >"}, "where", "."),
        ({"where": "x" * 3_000}, "where", "at most 2048 characters"),
        ({"keys": "k\n" * 1_001}, "keys", "Enter at most 1000, not 1001."),
        ({"ids": "k" * 65}, "ids", "1 to 64 characters"),
        ({"rate_per_s": "0"}, "rate_per_s", "Enter a number from 1 to 500."),
        ({"rate_per_s": "nan"}, "rate_per_s", "Enter a number"),
        ({"rate_per_s": "9000"}, "rate_per_s", "Enter a number from 1 to 500."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_error_is_shown_at_its_field_which_gets_the_focus(
    alices: Client, live: Pipe, fields: dict[str, Any], field: str, words: str
):
    for action in ("review", "start", "rehearse"):
        answer = alices.post(new_of(live), form_of(**fields, action=action))
        assert answer.status_code == 422
        assert list(answer.context["form"].errors) == [field]
        assert words in answer.context["form"].errors[field][0]
        shown = answer.content.decode()
        assert shown.count("autofocus") == 1
        assert "Not started: correct the marked field." in plain(shown)
    assert not Replay.objects.exists()


def test_input_survives_an_error(alices: Client, live: Pipe):
    shown = alices.post(new_of(live), form_of(rate_per_s="x", keys="c-42", where="true")).content.decode()
    for typed in ('value="2026-07-01T08:00"', 'value="x"', ">\nc-42</textarea>", ">\ntrue</textarea>"):
        assert typed in shown


def test_limit_of_the_tenant_is_shown_and_is_the_most_that_is_filled_in(alices: Client, live: Pipe, alice: User):
    TenantQuota.objects.create(
        tenant=live.tenant, limits={"replay_units_per_s": 20}, changed_at=timezone.now(), changed_by=alice
    )
    answer = alices.get(new_of(live))
    assert "At most 20, the limit of your tenant" in plain(answer.content.decode())
    assert answer.context["form"].initial["rate_per_s"] == "20"


def test_query_count(alices: Client, live: Pipe, django_assert_num_queries: DjangoAssertNumQueries):
    alices.get(new_of(live))
    with django_assert_num_queries(FORM):
        alices.get(new_of(live))


def test_review_says_what_will_happen_and_starts_nothing(alices: Client, live: Pipe):
    answer = alices.post(new_of(live), form_of(where="true", ids="m1\r\nm2\r\n"))
    shown = plain(answer.content.decode())
    assert (
        "Events accepted between 2026-07-01 08:00:00 and 2026-07-01 20:00:00 ( UTC ) are sent again to crm , "
        "at most 50 messages per second."
    ) in shown
    assert "Only events for which true is true." in shown
    assert "Only events with one of 2 ids." in shown
    assert "Receivers see the same webhook-id as before and the header penstock-replay ." in shown
    assert not Replay.objects.exists()


def test_confirmed_review_starts_the_replay_that_was_shown(alices: Client, live: Pipe, alice: User):
    review = alices.post(new_of(live), form_of(keys=" a \r\n\r\nb", ids="m1")).context
    fields: dict[str, Any] = {"action": "start"}
    for name, value in review["carried"]:
        fields.setdefault(name, []).append(value)
    answer = alices.post(new_of(live), fields)
    row = Replay.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, page_of(row))
    assert (row.since, row.until) == (datetime(2026, 7, 1, 8, tzinfo=UTC), datetime(2026, 7, 1, 20, tzinfo=UTC))
    assert (row.destinations, row.keys, row.ids, row.revision) == (["crm"], [" a ", "b"], ["m1"], 1)
    assert (row.by, row.rate_per_s, row.rehearsal) == (alice, 50, False)


def test_review_names_the_revision_so_that_a_later_one_is_not_started(alices: Client, live: Pipe):
    carried = alices.post(new_of(live), form_of()).context["carried"]
    assert [value for name, value in carried if name == "revision"] == ["1"]


def test_rehearsal_starts_at_once_and_sends_nothing(alices: Client, live: Pipe):
    answer = alices.post(new_of(live), form_of(action="rehearse"), follow=True)
    assert Replay.objects.get().rehearsal
    assert "Rehearsal started. Nothing is sent." in plain(answer.content.decode())


def test_change_returns_to_the_form_with_its_input_and_no_errors(alices: Client, live: Pipe):
    answer = alices.post(new_of(live), form_of(action="edit", keys="a", since="2026-07-01T08:00:30"))
    assert answer.status_code == 200
    shown = answer.content.decode()
    assert 'value="2026-07-01T08:00:30"' in shown
    assert ">\na</textarea>" in shown
    assert 'value="crm" checked' in shown
    assert "field-error" not in shown


def test_second_replay_of_a_tenant_is_refused_with_a_link_to_the_first(
    alices: Client, make_replay: MakeReplay, live: Pipe
):
    row = make_replay()
    shown = alices.get(new_of(live)).content.decode()
    assert page_of(row) in shown
    answer = alices.post(new_of(live), form_of())
    assert answer.status_code == 422
    assert "Not started:" in plain(answer.content.decode())
    assert "a tenant has one at a time" in plain(answer.content.decode())
    assert Replay.objects.count() == 1


def test_paused_pipe_can_only_be_rehearsed(alices: Client, live: Pipe):
    pause_pipe(pipe=live)
    assert "You can rehearse a replay" in text_of(alices, new_of(live))
    assert alices.post(new_of(live), form_of()).status_code == 422
    assert alices.post(new_of(live), form_of(action="rehearse")).status_code == 302


def test_selected_minutes_lead_to_the_form(alices: Client, live: Pipe, now: datetime):
    start = (now - timedelta(minutes=20)).strftime("%Y-%m-%dT%H:%M")
    end = (now - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M")
    page = reverse("console:pipe", args=[live.id])
    assert new_of(live) not in alices.get(page).content.decode()
    link = f"{new_of(live)}?from={start}&amp;to={end}"
    assert link in alices.get(page, {"from": start, "to": end}).content.decode()


def test_minute_with_events_leads_to_the_form(alices: Client, truth: Truth, bucket: int):
    html = alices.get(reverse("console:minute", args=[truth.pipe.id, bucket])).content.decode()
    query = parse_qs(urlsplit(html.split(f'href="{new_of(truth.pipe)}')[1].split('"')[0].replace("&amp;", "&")).query)
    since, until = (datetime.fromisoformat(query[name][0]) for name in ("from", "to"))
    assert bucket_at(since.replace(tzinfo=UTC)) == bucket
    assert until - since == timedelta(minutes=1)


def test_active_destination_leads_to_the_form(alices: Client, live: Pipe):
    url, link = reverse("console:destination", args=[live.id, "crm"]), f"{new_of(live)}?destination=crm"
    assert link in alices.get(url).content.decode()
    Destination.objects.filter(pipe=live).update(state="paused")
    assert link not in alices.get(url).content.decode()


def test_viewer_is_shown_no_link_to_the_form(browser_of: BrowserOf, viewer: User, truth: Truth, bucket: int):
    browser = browser_of(viewer)
    for url in (
        reverse("console:minute", args=[truth.pipe.id, bucket]),
        reverse("console:destination", args=[truth.pipe.id, "crm"]),
    ):
        assert new_of(truth.pipe) not in browser.get(url).content.decode()


def test_curl_of_the_form_is_a_request_of_the_api(alices: Client, live: Pipe):
    curl = alices.get(new_of(live)).context["curl"]
    assert f"/api/v1/pipes/{live.id}/replays/" in curl
    body = json.loads(curl.split("-d ")[1].strip().strip("'"))
    assert datetime.fromisoformat(body["since"]) < datetime.fromisoformat(body["until"])
    assert (body["destinations"], body["rehearsal"]) == (["crm"], True)
