"""Pages of replays: list, one replay, its actions, and who may read and change them."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries

from dataplane.ledger.breakdown import Breakdown, Slice
from mgmt.models import Destination, LagRow, Membership, Pipe, Replay, Tenant, User
from mgmt.services import add_member, close_pipe, create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.replays import MakeReplay, ended, form_of, list_of, new_of, page_of, stored, text_of
from tests.db.console.truth import BrowserOf, Truth, exported, plain
from tests.db.replays import replay_fact, replay_facts

pytestmark = pytest.mark.django_db
LIST, PAGE = 18, 20
BINS = {"crm": {"delivered": 4_000, "dead": 12}, "": {"filtered": 40}}
ACTIONS = ("pause_replay", "resume_replay", "abort_replay", "repeat_failed")


def test_pipe_without_a_replay_says_what_one_is_and_when_to_use_it(alices: Client, live: Pipe):
    shown = alices.get(list_of(live)).content.decode()
    assert "A replay sends events of the past once more" in plain(shown)
    assert "Use it when a receiver lost what it had accepted" in plain(shown)
    assert new_of(live) in shown


def test_viewer_reads_the_list_and_learns_who_may_start_one(browser_of: BrowserOf, viewer: User, live: Pipe):
    shown = browser_of(viewer).get(list_of(live)).content.decode()
    assert "Your role is viewer. Operators can start replays." in plain(shown)
    assert new_of(live) not in shown


def test_closed_pipe_offers_no_replay(alices: Client, live: Pipe):
    close_pipe(pipe=live)
    shown = alices.get(list_of(live)).content.decode()
    assert "Reopen it to replay its events." in plain(shown)
    assert new_of(live) not in shown


def test_replays_are_listed_newest_first_with_state_and_figures(
    alices: Client, make_replay: MakeReplay, live: Pipe, now: datetime
):
    make_replay(id="replay_1", **ended(now), **stored(BINS, now))
    make_replay(id="replay_2", **ended(now, rehearsal=True), **stored({}, now), ids=["a", "b"])
    started = now - timedelta(minutes=4)
    make_replay(
        id="replay_3", state="running", started_at=started, progress_at=now, read=620, asked=600,
        ends={"t/0": 1_000}, reached={"t/0": 620},
    )  # fmt: skip
    shown = text_of(alices, list_of(live))
    rows = [
        "running 62%, about 2min left",
        "rehearsed 2026-11-26 08:00:00 to 2026-11-26 20:00:00 2 message ids crm @1 4052 rehearsal - alice",
        "done, some failed 2026-11-26 08:00:00 to 2026-11-26 20:00:00 crm @1 4052 4000 / 4052 12 alice",
    ]
    places = [shown.find(row) for row in rows]
    assert -1 not in places
    assert places == sorted(places)


def test_older_replays_are_on_the_next_page(
    alices: Client, make_replay: MakeReplay, live: Pipe, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mgmt.replays.pages.replays.MOST", 2)
    rows = [make_replay(id=f"replay_{number}", state="aborted") for number in range(3)]
    first = alices.get(list_of(live)).content.decode()
    assert page_of(rows[0]) not in first
    assert f"?before={rows[1].id}" in first
    second = alices.get(list_of(live), {"before": rows[1].id}).content.decode()
    assert page_of(rows[0]) in second
    assert page_of(rows[1]) not in second
    assert alices.get(list_of(live), {"before": "a\x00b"}).status_code == 200


def test_query_count_does_not_grow_with_the_replays(
    alices: Client, make_replay: MakeReplay, live: Pipe, now: datetime,
    django_assert_num_queries: DjangoAssertNumQueries,
):  # fmt: skip
    make_replay(**ended(now))
    make_replay(**ended(now), **stored(BINS, now))
    alices.get(list_of(live))
    with django_assert_num_queries(LIST):
        alices.get(list_of(live))
    for _ in range(5):
        make_replay(**ended(now))
        make_replay(**ended(now), **stored(BINS, now))
    with django_assert_num_queries(LIST):
        alices.get(list_of(live))


def test_finished_replay_shows_where_every_message_is(alices: Client, make_replay: MakeReplay, now: datetime):
    row = make_replay(**ended(now), **stored(BINS, now))
    html = alices.get(page_of(row)).content.decode()
    shown = plain(html)
    assert "done, some failed" in shown
    assert "12 messages were not delivered. Fix the cause, then repeat them." in shown
    assert "crm 4000 0 0 12 0 0 0 4012" in shown
    assert "no destination yet 0 40 0 0 0 0 0 40" in shown
    assert "4052 events selected = 4000 delivered + 40 filtered + 12 dead ." in shown.replace("dead.", "dead .")
    assert "?bin=dead#units" in html
    assert page_of(row, "repeat_failed") in html
    assert f"penstock-replay: {row.id}" in html
    assert f'data-live="{page_of(row)}?part=state' not in html  # nothing of it changes any more


def test_event_with_several_destinations_is_explained(alices: Client, make_replay: MakeReplay, now: datetime):
    bins = {"crm": {"delivered": 9}, "books": {"delivered": 9}}
    result = {"asked": 9, "bins": bins, "nodes": []}
    row = make_replay(**ended(now), result=result, result_at=now)
    assert "9 events selected, which became 18 messages = 18 delivered" in text_of(alices, page_of(row))


def test_running_replay_shows_progress_and_refreshes(alices: Client, make_replay: MakeReplay, now: datetime):
    started = now - timedelta(minutes=4)
    row = make_replay(
        state="running", started_at=started, progress_at=now, read=500, asked=500,
        ends={"t/0": 1_000}, reached={"t/0": 500},
    )  # fmt: skip
    html = alices.get(page_of(row)).content.decode()
    assert 'max="100" value="50"' in html
    assert "50%, about 4min left" in plain(html)
    assert f'data-live="{page_of(row)}?part=state"' in html
    part = alices.get(page_of(row), {"part": "state,account"}, headers={"HX-Request": "true"}).content.decode()
    assert part.count("data-live") == 2
    assert "<h1>" not in part
    for action in ("pause_replay", "abort_replay"):
        assert page_of(row, action) in html
    assert page_of(row, "resume_replay") not in html


def test_running_replay_warns_of_a_paused_destination(alices: Client, make_replay: MakeReplay, live: Pipe):
    row = make_replay()
    assert "they are cancelled" not in text_of(alices, page_of(row))
    Destination.objects.filter(pipe=live).update(state="paused")
    assert "crm is paused: messages of this replay are not held for it, they are cancelled." in text_of(
        alices, page_of(row)
    )


def test_open_outcomes_come_from_the_ledger_under_the_replays_own_id(
    alices: Client, make_replay: MakeReplay, live: Pipe, now: datetime
):
    row = make_replay(**ended(now, asked=10))
    replay_facts(row, range(10), delivered=range(7), dead=[7])
    replay_fact(row, "transmit:crm", "parked", [8], "1")
    Truth(live).passed(10)
    breakdown = Breakdown()
    breakdown.add([0], [[5_000] * len(Slice)])
    LagRow.objects.create(
        pipe_id=row.id, bucket=row.bucket, node="transmit:crm", audit_partition=0, breakdown=breakdown.encode()
    )
    html = alices.get(page_of(row), {"bin": "dead"}).content.decode()
    shown = plain(html)
    assert "crm 7 0 0 1 1 0 1 10" in shown
    assert reverse("console:message", args=[live.id, "1-0-7"]) in html
    assert "ingest to response" in shown
    assert [one["position"] for one in exported(alices, page_of(row), bin="dead")] == ["1-0-7"]


def test_query_count_of_the_page(
    alices: Client, make_replay: MakeReplay, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
):
    row = make_replay(**ended(now))
    alices.get(page_of(row))
    with django_assert_num_queries(PAGE):
        alices.get(page_of(row))


def test_finished_rehearsal_shows_what_it_would_send_and_leads_to_the_real_one(
    alices: Client, make_replay: MakeReplay, now: datetime
):
    row = make_replay(**ended(now, rehearsal=True, failed=12), **stored({}, now))
    html = alices.get(page_of(row)).content.decode()
    shown = plain(html)
    assert "4052 events selected. It would send 4012 messages, 3.1MB ." in shown
    assert "12 messages fail in a step. 40 are filtered out." in shown
    assert f"{new_of(row.pipe)}?like={row.id}" in html
    assert "Run it for real" in shown
    assert "Loss by node" not in shown


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "starting Requested"),
        ({"error": "crm is paused"}, "Waiting: crm is paused."),
        ({"state": "paused"}, "Resume it to continue where it stopped."),
        ({"state": "aborting"}, "Stopping. Messages already sent are still delivered."),
        ({"state": "aborted"}, "the rest was not sent."),
        ({"state": "failed", "error": "the plan is gone"}, "The replay failed"),
        ({"state": "done"}, "All events were read"),
    ],
    ids=str,
)
def test_each_state_has_its_sentence(
    alices: Client, make_replay: MakeReplay, now: datetime, fields: dict[str, str], words: str
):
    over = {"finished_at": now} if fields.get("state") in ("aborted", "failed", "done") else {}
    row = make_replay(**fields, **over)
    assert words.replace("starting Requested", "Requested") in text_of(alices, page_of(row))


def test_pause_resume_and_abort(alices: Client, make_replay: MakeReplay):
    row = make_replay()
    for action, state, words in (
        ("pause_replay", "paused", "Replay paused."),
        ("resume_replay", "running", "Replay resumed."),
        ("abort_replay", "aborting", "Stopping the replay."),
        ("pause_replay", "aborting", "Nothing was changed: the replay is aborting."),
    ):
        shown = plain(alices.post(page_of(row, action), follow=True).content.decode())
        row.refresh_from_db()
        assert row.state == state
        assert words in shown


def test_repeat_without_a_failed_message_says_so(alices: Client, make_replay: MakeReplay, now: datetime):
    row = make_replay(**ended(now), **stored({"crm": {"delivered": 3}}, now))
    shown = plain(alices.post(page_of(row, "repeat_failed"), follow=True).content.decode())
    assert "No event of this replay is dead, cancelled or lost." in shown
    assert Replay.objects.count() == 1


def test_operator_may_replay(browser_of: BrowserOf, tenant: Tenant, make_replay: MakeReplay, live: Pipe):
    operator = User.objects.create_user("otto")
    add_member(tenant=tenant, user=operator, role=Membership.Role.OPERATOR)
    browser = browser_of(operator)
    assert browser.get(new_of(live)).status_code == 200
    assert browser.post(page_of(make_replay(), "pause_replay")).status_code == 302


def test_viewer_reads_a_replay_and_changes_none(
    browser_of: BrowserOf, viewer: User, make_replay: MakeReplay, live: Pipe
):
    row, browser = make_replay(), browser_of(viewer)
    shown = browser.get(page_of(row)).content.decode()
    for action in ACTIONS:
        assert page_of(row, action) not in shown
        assert browser.post(page_of(row, action)).status_code == 403
    assert browser.get(new_of(live)).status_code == 403
    assert browser.post(new_of(live), form_of(action="start")).status_code == 403
    row.refresh_from_db()
    assert (row.state, Replay.objects.count()) == ("running", 1)


def test_another_tenant_and_another_pipe_get_404(
    browser_of: BrowserOf, alices: Client, charlie: User, make_replay: MakeReplay, live: Pipe, tenant: Tenant,
    alice: User, a_spec: MakeSpec,
):  # fmt: skip
    row, charlies = make_replay(), browser_of(charlie)
    other = create_pipe(tenant=tenant, name="other", spec=a_spec(), author=alice)
    for browser, pipe_id in ((charlies, live.id), (alices, other.id)):
        assert browser.get(reverse("console:replay", args=[pipe_id, row.id])).status_code == 404
        for action in ACTIONS:
            assert browser.post(reverse(f"console:{action}", args=[pipe_id, row.id])).status_code == 404
    for url in (list_of(live), new_of(live)):
        assert charlies.get(url).status_code == 404
    row.refresh_from_db()
    assert row.state == "running"
