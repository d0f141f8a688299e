"""Pages of shadow runs: from the editor to a run, its page, its actions, and who may read and change them."""

import html
import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.models import Membership, Pipe, Shadow, Tenant, User
from mgmt.services import add_member, close_pipe, create_pipe, publish_revision
from mgmt.shadows.services.progress import note_shadow_progress
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, plain
from tests.db.shadows import FILTER, a_draft, a_report, a_shadow

pytestmark = pytest.mark.django_db
LIST, PAGE = 12, 16
ACTIONS = ("stop_shadow", "promote_shadow")
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


@pytest.fixture
def shadow(live: Pipe, alice: User, now: datetime) -> Shadow:
    """Return a run with one report of the driver."""
    row = a_shadow(live, now=now)
    note_shadow_progress(progress=a_report(row), now=now)
    Shadow.objects.update(by=alice)
    row.refresh_from_db()
    return row


@pytest.fixture
def operator(tenant: Tenant) -> User:
    user = User.objects.create_user("olaf")
    add_member(tenant=tenant, user=user, role=Membership.Role.OPERATOR)
    return user


def page_of(row: Shadow, action: str = "shadow") -> str:
    return reverse(f"console:{action}", args=[row.pipe_id, row.id])


def list_of(pipe: Pipe) -> str:
    return reverse("console:shadows", args=[pipe.id])


def new_of(pipe: Pipe) -> str:
    return reverse("console:new_shadow", args=[pipe.id])


def edit_of(pipe: Pipe) -> str:
    return reverse("console:edit_pipe", args=[pipe.id])


def text_of(browser: Client, url: str, **query: str) -> str:
    answer = browser.get(url, query)
    assert answer.status_code == 200
    return plain(answer.content.decode())


def posted_draft(pipe: Pipe, spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return the form of the editor in its JSON mode."""
    document = json.dumps(spec or a_draft(pipe))
    return {"mode": "json", "spec": document, "based_on": "1", "sample": "{}", "action": "rehearse"} | fields


def hidden_in(page: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in HIDDEN.findall(page)}


# -- from the editor


def test_editor_offers_a_rehearsal_beside_the_comparison(alices: Client, live: Pipe):
    shown = text_of(alices, edit_of(live))
    assert "Compare with the last 100 events Rehearse on real events …" in shown


def test_draft_of_the_editor_is_rehearsed_after_the_choice_of_events(alices: Client, live: Pipe):
    answer = alices.post(edit_of(live), posted_draft(live))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Rehearse the draft on real events" in plain(page)
    assert "against the live revision @1" in plain(page)
    carried = hidden_in(page)
    assert carried["spec"] == json.dumps(a_draft(live)), "the editor's fields are kept for the way back"
    started = alices.post(new_of(live), carried | {"shadow-over": "newest", "shadow-events": "500"})
    row = Shadow.objects.get()
    assert (started.status_code, started["Location"]) == (302, page_of(row))
    assert (row.most_events, row.spec["normalize"], row.by.get_username()) == (500, [FILTER], "alice")  # type: ignore[union-attr]
    assert live.revisions.count() == 1


def test_way_back_to_the_editor_keeps_the_draft(alices: Client, live: Pipe):
    carried = hidden_in(alices.post(edit_of(live), posted_draft(live)).content.decode())
    back = alices.post(edit_of(live), carried | {"action": "redraw"})
    assert back.status_code == 200
    assert "body.total &gt; 0" in back.content.decode()


def test_live_traffic_and_a_range_can_be_chosen(alices: Client, live: Pipe, now: datetime):
    carried = hidden_in(alices.post(edit_of(live), posted_draft(live)).content.decode())
    alices.post(new_of(live), carried | {"shadow-over": "follow", "shadow-events": "500"})
    assert Shadow.objects.get().follows
    Shadow.objects.update(state="stopped")
    times = {"shadow-since": f"{now - timedelta(hours=2):%Y-%m-%dT%H:%M}", "shadow-until": f"{now:%Y-%m-%dT%H:%M}"}
    alices.post(new_of(live), carried | {"shadow-over": "range"} | times)
    row = Shadow.objects.latest("id")
    assert row.until is not None
    assert (row.until - row.since, row.most_events) == (timedelta(hours=2), 1_000_000)


def test_draft_with_an_error_returns_to_the_editor_with_the_field_marked(alices: Client, live: Pipe):
    spec = {**a_draft(live), "normalize": [{"op": "filter", "when": "body.("}]}
    answer = alices.post(edit_of(live), posted_draft(live, spec))
    assert answer.status_code == 422
    assert "1 error" in plain(answer.content.decode())
    assert 'id="pipe-form"' in answer.content.decode()


def test_draft_that_changes_nothing_returns_to_the_editor_with_the_reason(alices: Client, live: Pipe):
    answer = alices.post(edit_of(live), posted_draft(live, live.revisions.get().spec))
    assert answer.status_code == 422
    assert "The draft is the spec of revision 1, which is live: nothing would differ." in plain(answer.content.decode())


def test_draft_of_an_older_revision_returns_to_the_editor_as_a_conflict(alices: Client, live: Pipe, alice: User):
    publish_revision(pipe=live, spec=a_draft(live), based_on=1, author=alice)
    answer = alices.post(edit_of(live), posted_draft(live))
    assert answer.status_code == 409
    assert "orders has revision 2, and the draft is based on 1." in plain(answer.content.decode())


@pytest.mark.parametrize(
    ("fields", "words", "status"),
    [
        ({"shadow-events": ""}, "Enter a number from 1 to 1,000,000.", 422),
        ({"shadow-events": "0"}, "greater than or equal to 1", 422),
        ({"shadow-over": "range", "shadow-since": "", "shadow-until": ""}, "Enter a date and a time.", 422),
        ({"shadow-over": "range", "shadow-since": "2999-01-01T00:00", "shadow-until": "2999-01-02T00:00"},
         "Needs a time in the past", 422),
        ({"shadow-document": "["}, "The draft cannot be read", 422),
        ({"shadow-based_on": "9"}, "Not started: orders has revision 1", 409),
    ],
)  # fmt: skip
def test_wrong_choice_is_marked_and_keeps_what_was_entered(
    alices: Client, live: Pipe, fields: dict[str, str], words: str, status: int
):
    carried = hidden_in(alices.post(edit_of(live), posted_draft(live)).content.decode())
    answer = alices.post(new_of(live), carried | {"shadow-over": "newest", "shadow-events": "5"} | fields)
    page = answer.content.decode()
    assert answer.status_code == status
    assert words in plain(page)
    assert hidden_in(page)["spec"] == carried["spec"]
    assert not Shadow.objects.exists()


def test_run_of_the_tenant_that_is_under_way_refuses_another(alices: Client, live: Pipe, shadow: Shadow):
    answer = alices.post(edit_of(live), posted_draft(live))
    assert answer.status_code == 422
    assert f"Shadow run {shadow.id} of orders is running" in plain(answer.content.decode())


def test_starts_count_as_comparisons(alices: Client, live: Pipe, monkeypatch: pytest.MonkeyPatch):
    carried = hidden_in(alices.post(edit_of(live), posted_draft(live)).content.decode())
    monkeypatch.setattr("mgmt.shadows.pages.new.hit", lambda limit, *_: 9 if limit.name == "comparisons" else 0)
    answer = alices.post(new_of(live), carried | {"shadow-over": "follow"})
    assert answer.status_code == 429
    assert "Not started: too many starts. Try again in 9 s." in plain(answer.content.decode())
    assert not Shadow.objects.exists()


def test_new_run_without_a_draft_leads_to_the_editor(alices: Client, live: Pipe):
    answer = alices.get(new_of(live))
    assert (answer.status_code, answer["Location"]) == (302, edit_of(live))


def test_earlier_run_is_rehearsed_again_or_edited(alices: Client, live: Pipe, shadow: Shadow):
    page = alices.get(new_of(live), {"like": shadow.id}).content.decode()
    carried = hidden_in(page)
    assert json.loads(carried["shadow-document"]) == shadow.spec
    assert f"{edit_of(live)}?shadow={shadow.id}" in page
    Shadow.objects.update(state="done")
    assert alices.post(new_of(live), carried | {"shadow-over": "follow"}).status_code == 302
    assert Shadow.objects.latest("id").spec == shadow.spec
    editor = alices.get(edit_of(live), {"shadow": shadow.id}).content.decode()
    assert "body.total &gt; 0" in editor
    assert "This is the draft of a shadow run . Publishing it creates revision 2." in plain(editor)


# -- list


def test_pipe_without_a_run_says_what_one_is_and_how_to_start_it(alices: Client, live: Pipe):
    shown = text_of(alices, list_of(live))
    assert "executes a draft over real events of this pipe, sends nothing, and compares" in shown
    assert "select Rehearse on real events" in shown


def test_runs_are_listed_newest_first_with_their_results(alices: Client, live: Pipe, shadow: Shadow, now: datetime):
    Shadow.objects.update(state="done", promoted=2)
    a_shadow(live, follow=True, now=now)
    shown = text_of(alices, list_of(live))
    first, second = shown.find("live traffic @1 - - 0 - Penstock"), shown.find("@1 80 60 / 80 18 @2 alice")
    assert -1 < first < second


def test_older_runs_are_on_the_next_page(alices: Client, live: Pipe, now: datetime, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.shadows.pages.shadows.MOST", 2)
    rows = []
    for _ in range(3):
        rows.append(a_shadow(live, now=now))
        Shadow.objects.update(state="stopped")
    first = alices.get(list_of(live)).content.decode()
    assert page_of(rows[0]) not in first
    second = alices.get(list_of(live), {"before": rows[1].id}).content.decode()
    assert page_of(rows[0]) in second
    assert page_of(rows[1]) not in second
    assert alices.get(list_of(live), {"before": "a\x00b"}).status_code == 200


def test_query_counts_do_not_grow_with_runs_and_results(
    alices: Client, live: Pipe, shadow: Shadow, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
):
    alices.get(list_of(live))
    with django_assert_num_queries(LIST):
        alices.get(list_of(live))
    with django_assert_num_queries(PAGE):
        alices.get(page_of(shadow))
    Shadow.objects.update(units={f"d{number}": {"equal": 1} for number in range(20)})
    for _ in range(5):
        Shadow.objects.update(state="done")
        a_shadow(live, now=now)
    with django_assert_num_queries(LIST):
        alices.get(list_of(live))
    with django_assert_num_queries(PAGE):
        alices.get(page_of(shadow))


# -- one run


def test_page_shows_what_differs_where_and_at_which_cost(alices: Client, live: Pipe, shadow: Shadow):
    page = alices.get(page_of(shadow)).content.decode()
    shown = plain(page)
    assert "running" in shown
    assert "50%" in shown
    assert "Compared 80 events, accepted until" in shown
    assert "60 of 80 messages are equal" in shown
    assert "crm 60 75.0% 10 12.5% 5 6.2% 3 3.8% 2 2.5% 80" in shown
    assert "total crm 9 12.9%" in shown
    assert '1-0-1050 to crm Field Live revision Draft total "12" 12' in shown
    assert "1-0-1070 to crm: in the draft filtered out" in shown
    assert f"/pipes/{live.id}/messages/1-0-1060/?child=2" in page
    assert "50.0 µs per event" in shown
    assert "75.0 µs per event: 1.5 times the CPU time of the live revision" in shown
    assert '<span class="new">  &quot;normalize&quot;: [' in page
    assert f'data-live="{page_of(shadow)}?part=state"' in page
    assert f'data-live="{page_of(shadow)}?part=results"' in page
    for internal in ("only_shadow", "only_draft", "only_live", "not_sent", "penstock.c1"):
        assert internal not in shown


def test_causes_of_rejection_are_in_words_with_their_help(alices: Client, shadow: Shadow):
    page = alices.get(page_of(shadow)).content.decode()
    assert "Rejected by the draft only" in plain(page)
    assert reverse("console:cause", args=["step"]) in page


def test_refresh_returns_the_parts_of_the_page(alices: Client, shadow: Shadow):
    answer = alices.get(page_of(shadow), {"part": "state,results"}, headers={"HX-Request": "true"})
    page = answer.content.decode()
    assert 'id="state"' in page
    assert 'id="results"' in page
    assert "<html" not in page


def test_ended_run_does_not_refresh(alices: Client, shadow: Shadow, now: datetime):
    note_shadow_progress(progress=a_report(shadow, done=True), now=now)
    page = alices.get(page_of(shadow)).content.decode()
    for part in ("state", "results"):
        assert f'data-live="{page_of(shadow)}?part={part}"' not in page
    assert "Rehearse again …" in plain(page)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": "failed", "error": "position 7 ends the process"}, "failed position 7 ends the process"),
        ({"state": "running", "error": "table rates is missing"}, "Waiting: table rates is missing."),
        ({"state": "done", "error": "events before 9:00 have expired"}, "All events that are still retained"),
        ({"state": "stopping"}, "The results so far are kept."),
        ({"state": "stopped", "why_stopped": "it ran for 7 days"}, "because it ran for 7 days"),
        ({"state": "running", "started_at": None}, "It starts within a few seconds"),
        ({"state": "done", "units": {}}, "No message was compared"),
    ],
)
def test_each_state_says_what_happened(
    alices: Client, shadow: Shadow, now: datetime, fields: dict[str, Any], words: str
):
    Shadow.objects.update(finished_at=now, **fields)
    shown = re.sub(r"failed [0-9: -]+: ", "failed ", text_of(alices, page_of(shadow)))
    assert words in shown


@pytest.mark.parametrize(("reached", "words"), [(1_200, "up to date with live traffic"), (1_100, "3.0s behind live")])
def test_run_that_follows_shows_how_far_it_is_behind(
    alices: Client, live: Pipe, now: datetime, reached: int, words: str
):
    row = a_shadow(live, follow=True, now=now)
    note_shadow_progress(progress=a_report(row, reached={"penstock.c1.ingest.g1/0": reached}), now=now)
    shown = text_of(alices, page_of(row))
    assert words in shown
    assert "following live traffic" in shown


# -- actions


def test_stop_keeps_the_results(alices: Client, shadow: Shadow):
    assert "Its results are kept" in plain(alices.post(page_of(shadow, "stop_shadow"), follow=True).content.decode())
    again = alices.post(page_of(shadow, "stop_shadow"), follow=True).content.decode()
    assert "Nothing was changed: the shadow run is stopping." in plain(again)


def test_promotion_says_what_happens_and_publishes_the_draft(alices: Client, live: Pipe, shadow: Shadow):
    shown = text_of(alices, page_of(shadow))
    assert "Publishes this draft as revision 2. It ramps next to revision 1, and is rolled back if it performs" in shown
    assert "The shadow run is stopped." in shown
    answer = alices.post(page_of(shadow, "promote_shadow"))
    assert (answer.status_code, answer["Location"]) == (302, reverse("console:pipe", args=[live.id]))
    assert live.revisions.latest("number").spec["normalize"] == [FILTER]
    shown = text_of(alices, page_of(shadow))
    assert "This draft was published as revision 2" in shown
    assert "Promote …" not in shown


def test_promotion_over_a_newer_revision_is_refused_and_not_offered(
    alices: Client, live: Pipe, shadow: Shadow, alice: User
):
    other = {**a_draft(live), "normalize": [{"op": "filter", "when": "body.total > 1"}]}
    publish_revision(pipe=live, spec=other, based_on=1, author=alice)
    shown = text_of(alices, page_of(shadow))
    assert "Revision 2 was published after this run began." in shown
    assert "Promote …" not in shown
    refused = plain(alices.post(page_of(shadow, "promote_shadow"), follow=True).content.decode())
    assert "Not promoted: Revision 2 of orders was published after this run began" in refused
    assert live.revisions.count() == 2


def test_closed_pipe_offers_no_rehearsal_and_no_promotion(alices: Client, live: Pipe, shadow: Shadow):
    close_pipe(pipe=live)
    assert "Reopen it to rehearse a draft." in text_of(alices, list_of(live))
    assert "Promote …" not in text_of(alices, page_of(shadow))
    refused = plain(alices.post(page_of(shadow, "promote_shadow"), follow=True).content.decode())
    assert "Not promoted: orders is closed." in refused


# -- roles


@pytest.mark.parametrize("who", ["viewer", "operator"])
def test_role_reads_the_run_and_sees_only_the_buttons_that_it_may_use(
    browser_of: BrowserOf, request: pytest.FixtureRequest, shadow: Shadow, who: str
):
    browser = browser_of(request.getfixturevalue(who))
    shown = text_of(browser, page_of(shadow))
    may_stop = who == "operator"
    assert ("Stop" in shown.split()) is may_stop
    assert "Promote …" not in shown
    assert browser.post(page_of(shadow, "stop_shadow")).status_code == (302 if may_stop else 403)
    assert browser.post(page_of(shadow, "promote_shadow")).status_code == 403
    assert browser.post(new_of(shadow.pipe), {}).status_code == 403
    assert browser.get(new_of(shadow.pipe)).status_code == 403


def test_run_of_another_tenant_or_pipe_is_not_found(
    browser_of: BrowserOf, charlie: User, shadow: Shadow, tenant: Tenant, alice: User, alices: Client, a_spec: MakeSpec
):
    charlies = browser_of(charlie)
    assert charlies.get(page_of(shadow)).status_code == 404
    for action in ACTIONS:
        assert charlies.post(page_of(shadow, action)).status_code == 404
    other = create_pipe(tenant=tenant, name="returns", spec=a_spec(), author=alice)
    assert alices.get(reverse("console:shadow", args=[other.id, shadow.id])).status_code == 404
    assert alices.get(edit_of(other), {"shadow": shadow.id}).status_code == 404
