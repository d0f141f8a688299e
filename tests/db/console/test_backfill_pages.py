"""Backfills in the console and the API: the new destination, the list of replays, the plan, and their reasons."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.models import Backfill, Destination, Membership, Pipe, Tenant, User
from mgmt.services import add_member, create_pipe
from tests.db.backfills import new_destinations
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.replays import MakeReplay, ended, list_of, page_of, stored, text_of
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db


@pytest.fixture
def feed(live: Pipe) -> Destination:
    """A new topic destination of the live pipe."""
    return Destination.objects.create(
        pipe=live, name="feed", config={"type": "topic", "from": "earliest", "retry": {"local_tries": 3, "span_s": 60}}
    )


def a_backfill(pipe: Pipe, now: datetime, **fields: Any) -> Backfill:
    given = {"destination": "feed", "revision": 2, "beginning": "earliest", "created_at": now} | fields
    return Backfill.objects.create(pipe=pipe, **given)


def read(browser: Client, url: str) -> str:
    """Return the text of a page, without the spaces that elements leave before punctuation."""
    return re.sub(r" (?=[:,.])", "", text_of(browser, url))


def action_of(row: Backfill, action: str) -> str:
    return reverse(f"console:{action}_backfill", args=[row.pipe_id, row.id])


def _waiting(pipe: Pipe) -> tuple[Backfill, Destination]:
    """Return the waiting backfill of a new destination, and the destination."""
    (row,) = new_destinations(pipe, "feed")
    return row, pipe.destinations.get(name="feed")


def page_of_feed(row: Destination) -> str:
    return reverse("console:destination", args=[row.pipe_id, row.name])


def test_destination_shows_the_progress_of_its_backfill(
    alices: Client, make_replay: MakeReplay, live: Pipe, feed: Destination, now: datetime
):
    since = datetime.fromisoformat("2026-11-20T08:00:00Z")
    replay = make_replay(
        state="running", started_at=now - timedelta(minutes=4), progress_at=now, read=620, asked=600, since=since,
        ends={"t/0": 1_000}, reached={"t/0": 620}, destinations=["feed"], revisions=[1],
    )  # fmt: skip
    a_backfill(live, now, replay=replay)
    shown = read(alices, page_of_feed(feed))
    assert "Backfill with events accepted since 2026-11-20 08:00:00: running, 62%, about 2min left." in shown
    assert page_of(replay) in alices.get(page_of_feed(feed)).content.decode()
    assert "Start with earlier events earliest has an effect only when the destination is new" in shown


def test_destination_says_from_when_on_events_exist(
    alices: Client, make_replay: MakeReplay, live: Pipe, feed: Destination, now: datetime
):
    note = "events before 2026-11-20T17:02:00Z are no longer retained"
    bins = {"feed": {"delivered": 12, "dead": 1}}
    replay = make_replay(**ended(now, error=note), **stored(bins, now), destinations=["feed"])
    a_backfill(live, now, replay=replay)
    shown = read(alices, page_of_feed(feed))
    assert "done, some failed. Events before 2026-11-20T17:02:00Z are no longer retained." in shown


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({}, "it starts about a minute after revision 2 is live.", id="just live"),
        pytest.param({"reason": "The destination is paused."}, "waiting. The destination is paused.", id="waiting"),
        pytest.param({"reason": "orders is closed."}, "not started. orders is closed.", id="ended without a replay"),
    ],
)
def test_reason_is_on_the_page_of_the_destination_and_in_the_list(
    alices: Client, live: Pipe, feed: Destination, now: datetime, fields: dict[str, str], words: str
):
    over = {"ended_at": now} if words.startswith("not") else {}
    a_backfill(live, now, **fields, **over)
    assert f"Backfill with earlier events: {words}" in read(alices, page_of_feed(feed))
    assert f"Backfill of feed: {words}" in read(alices, list_of(live))


def test_waiting_backfill_is_cancelled_and_retried_on_its_page(alices: Client, pipe: Pipe):
    row, destination = _waiting(pipe)
    url = page_of_feed(destination)
    shown = alices.get(url).content.decode()
    assert (action_of(row, "cancel") in shown, action_of(row, "retry") in shown) == (True, False)
    answer = alices.post(action_of(row, "cancel"), {"back": "destination"}, follow=True)
    assert answer.redirect_chain == [(url, 302)]
    html = answer.content.decode()
    assert "Backfill of feed cancelled. Its events are not sent." in plain(html)
    assert "Backfill with earlier events: cancelled. The earlier events were not sent." in plain(html)
    assert "note-bad" not in html, "the customer wanted this"
    assert (action_of(row, "cancel") in html, action_of(row, "retry") in html) == (False, True)
    shown = plain(alices.post(action_of(row, "cancel"), follow=True).content.decode())
    assert "Nothing was changed: the backfill is cancelled." in shown
    shown = plain(alices.post(action_of(row, "retry"), follow=True).content.decode())
    assert "Backfill of feed requested again. It starts as soon as nothing delays it." in shown
    row.refresh_from_db()
    assert row.state == "waiting"


def test_list_has_the_actions_too_and_returns_to_itself(alices: Client, pipe: Pipe):
    row, _ = _waiting(pipe)
    for action in ("cancel", "retry"):
        html = alices.get(list_of(pipe)).content.decode()
        assert action_of(row, action) in html
        assert 'name="back" value="replays"' in html
        answer = alices.post(action_of(row, action), {"back": "replays"}, follow=True)
        assert answer.redirect_chain == [(list_of(pipe), 302)]


def test_refused_action_names_the_replay(alices: Client, make_replay: MakeReplay, live: Pipe, now: datetime):
    replay = make_replay(state="running", destinations=["feed"])
    row = a_backfill(live, now, replay=replay)
    html = alices.get(list_of(live)).content.decode()
    for action in ("cancel", "retry"):
        assert action_of(row, action) not in html
        shown = plain(alices.post(action_of(row, action), {"back": "replays"}, follow=True).content.decode())
        assert f"has replay {replay.id}, which is running. Pause, resume or abort the replay instead." in shown


def test_backfill_of_a_closed_pipe_offers_no_retry(alices: Client, live: Pipe, feed: Destination, now: datetime):
    row = a_backfill(live, now, reason="orders is closed.", ended_at=now)
    assert action_of(row, "retry") in alices.get(page_of_feed(feed)).content.decode()
    Pipe.objects.filter(id=live.id).update(state="closed")
    for url in (page_of_feed(feed), list_of(live)):
        assert action_of(row, "retry") not in alices.get(url).content.decode()


def test_operator_may_cancel_and_a_viewer_sees_no_action(
    browser_of: BrowserOf, viewer: User, tenant: Tenant, pipe: Pipe
):
    row, destination = _waiting(pipe)
    browser = browser_of(viewer)
    for url in (page_of_feed(destination), list_of(pipe)):
        assert "/backfills/" not in browser.get(url).content.decode()
    assert [browser.post(action_of(row, action)).status_code for action in ("cancel", "retry")] == [403, 403]
    row.refresh_from_db()
    assert row.state == "waiting"
    operator = User.objects.create_user("otto")
    add_member(tenant=tenant, user=operator, role=Membership.Role.OPERATOR)
    assert browser_of(operator).post(action_of(row, "cancel")).status_code == 302
    row.refresh_from_db()
    assert row.state == "cancelled"


def test_action_needs_a_csrf_token_and_a_post(alice: User, pipe: Pipe):
    row, _ = _waiting(pipe)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    for action in ("cancel", "retry"):
        assert browser.post(action_of(row, action)).status_code == 403
        assert browser.get(action_of(row, action)).status_code == 405
    row.refresh_from_db()
    assert row.state == "waiting"


def test_actions_on_a_backfill_of_another_pipe_or_tenant_give_404(
    browser_of: BrowserOf, alices: Client, charlie: User, pipe: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    row, _ = _waiting(pipe)
    other = create_pipe(tenant=tenant, name="other", spec=a_spec(), author=alice)
    for browser, pipe_id in ((browser_of(charlie), pipe.id), (alices, other.id)):
        for action in ("cancel", "retry"):
            assert browser.post(reverse(f"console:{action}_backfill", args=[pipe_id, row.id])).status_code == 404


def test_old_failure_leaves_the_list_and_stays_at_its_destination(
    alices: Client, live: Pipe, feed: Destination, now: datetime
):
    a_backfill(live, now, reason="orders is closed.", ended_at=now - timedelta(days=8))
    assert "orders is closed." not in read(alices, list_of(live))
    assert "orders is closed." in read(alices, page_of_feed(feed))


def test_replay_of_a_backfill_is_named_in_the_list_and_on_its_page(
    alices: Client, make_replay: MakeReplay, live: Pipe, now: datetime
):
    replay = make_replay(**ended(now), destinations=["feed"], revisions=[1, 4], by=None)
    a_backfill(live, now, replay=replay)
    shown = read(alices, list_of(live))
    assert "Backfill of feed" in shown
    assert "Backfill of feed:" not in shown, "its replay says how it is"
    shown = read(alices, page_of(replay))
    assert "Backfill of feed, started" in shown
    assert "Accepted under @1, @4" in shown
    assert "Run again" not in shown, "the form would send the events of all revisions"


def test_query_counts_do_not_grow_with_the_backfills(
    alices: Client, make_replay: MakeReplay, live: Pipe, feed: Destination, now: datetime,
    django_assert_num_queries: DjangoAssertNumQueries,
):  # fmt: skip
    def add(revision: int) -> None:
        a_backfill(live, now, revision=revision, reason="orders is closed.", ended_at=now)
        a_backfill(live, now, revision=revision + 50, replay=make_replay(**ended(now)))

    add(2)
    for url, count in ((list_of(live), 18), (page_of_feed(feed), 28)):
        alices.get(url)
        with django_assert_num_queries(count):
            alices.get(url)
    for number in range(5):
        add(number + 3)
    for url, count in ((list_of(live), 18), (page_of_feed(feed), 28)):
        with django_assert_num_queries(count):
            alices.get(url)


def test_backfills_are_in_the_api(
    make_replay: MakeReplay, live: Pipe, alice: User, client_of: MakeClient, now: datetime,
    django_assert_num_queries: DjangoAssertNumQueries,
):  # fmt: skip
    replay = make_replay(**ended(now), revisions=[1])
    feed = a_backfill(live, now, replay=replay)
    a_backfill(live, now, destination="other", reason="The destination is paused.")
    client, base = client_of(alice), f"/api/v1/pipes/{live.id}"
    with django_assert_num_queries(5):
        found = client.get(f"{base}/backfills/").json()["results"]
    said = [(one["destination"], one["state"], one["reason"], one["replay"], one["beginning"]) for one in found]
    assert sorted(said) == [
        ("feed", "done", "", replay.id, "earliest"),
        ("other", "waiting", "The destination is paused.", None, "earliest"),
    ]
    (one,) = client.get(f"{base}/replays/").json()["results"]
    assert (one["backfill"], one["backfill_id"], one["revisions"]) == ("feed", feed.id, [1])
    assert client.get(f"{base}/replays/{replay.id}/").json()["backfill_id"] == feed.id
    assert make_replay(state="aborted").id
    others = [one for one in client.get(f"{base}/replays/").json()["results"] if one["id"] != replay.id]
    assert [(one["backfill"], one["backfill_id"], one["revisions"]) for one in others] == [(None, None, [])]


def test_backfills_of_another_tenants_pipe_are_not_found(live: Pipe, charlie: User, client_of: MakeClient):
    assert client_of(charlie).get(f"/api/v1/pipes/{live.id}/backfills/").status_code == 404
