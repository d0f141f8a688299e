"""Ramp page: its steps and figures, the units of its revision, and the roles that may hold or roll it back."""

from datetime import datetime

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Pipe, PipeRevision, Ramp, User
from mgmt.services import begin_ramp, hold_ramp, publish_revision, raise_share, roll_back_ramp
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, Truth, go_live

pytestmark = pytest.mark.django_db
PAGE = 28


@pytest.fixture
def ramp(pipe: Pipe, alice: User, a_spec: MakeSpec, now: datetime) -> Ramp:
    """Revision 2 at 25 % with ten messages, three of them dead; revision 1 with five."""
    go_live(pipe)
    second = publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    begin_ramp(revision=second, share=25, now=now)
    truth, bucket = Truth(pipe), bucket_at(now)
    truth.moved(bucket, list(range(15)))
    truth.passed(15)
    truth.fact(bucket, "transmit:crm", "delivered", list(range(3, 15)))
    truth.fact(bucket, "transmit:crm", "dead", [0, 1, 2], "rejected")
    truth.fact(bucket, "ramp:25:2", "sent", list(range(10)))
    truth.fact(bucket, "ramp:25:1", "sent", list(range(10, 15)))
    return Ramp.objects.select_related("revision__pipe", "stable").get(revision=second)


def url(ramp: Ramp, name: str = "ramp") -> str:
    return reverse(f"console:{name}", args=[ramp.revision.pipe_id, ramp.revision.number])


def text(client: Client, where: str) -> str:
    return " ".join(client.get(where).content.decode().split())


def test_page_shows_the_step_with_the_figures_of_both_revisions(alices: Client, ramp: Ramp):
    page = text(alices, url(ramp))
    assert "25 % of the keys" in page
    assert '<td class="n" data-label="Messages">10</td><td class="n bad" data-label="Failed">3</td>' in page
    assert '<td class="n" data-label="Messages">5</td><td class="n zero" data-label="Failed">0</td>' in page


def test_units_of_the_revision_are_listed_by_position_with_their_bin(alices: Client, ramp: Ramp):
    page = text(alices, f"{url(ramp)}?bin=dead")
    assert 'href="?bin=delivered">delivered 7</a>' in page
    assert 'aria-current="true">dead 3</a>' in page
    assert page.count("/messages/1-0-") == 3


def test_units_of_the_revision_have_a_file_export(alices: Client, ramp: Ramp):
    lines = b"".join(alices.get(f"{url(ramp)}?bin=dead&format=csv").streaming_content).decode().split()  # type: ignore[attr-defined]
    assert lines == ["position,child,destination,bin", "1-0-0,0,crm,dead", "1-0-1,0,crm,dead", "1-0-2,0,crm,dead"]


def test_every_page_of_the_pipe_shows_the_ramp(alices: Client, ramp: Ramp):
    PipeRevision.objects.filter(id=ramp.revision_id).update(state_reason="at 25 % of the keys until 12:00:30 UTC")
    page = text(alices, reverse("console:pipe", args=[ramp.revision.pipe_id]))
    assert "@2 ramping 25 %" in page
    assert "Revision 2 is ramping next to revision 1: at 25 % of the keys until 12:00:30 UTC." in page
    assert f'href="{url(ramp)}"' in page
    assert "Ramp, at 25 %" in text(alices, reverse("console:revisions", args=[ramp.revision.pipe_id]))


def test_editor_holds_resumes_and_rolls_back_the_ramp(browser_of: BrowserOf, bob: User, ramp: Ramp):
    browser = browser_of(bob)
    assert browser.post(url(ramp, "hold_ramp")).status_code == 302
    assert "held at 25 %" in text(browser, url(ramp))
    browser.post(url(ramp, "resume_ramp"))
    assert "held at 25 %" not in text(browser, url(ramp)).replace("Hold", "")
    browser.post(url(ramp, "roll_back_ramp"))
    page = text(browser, url(ramp))
    assert "by bob: rolled back at 25 % of the keys by bob." in page
    assert "Roll back" not in page


def test_action_on_an_ended_ramp_says_that_it_is_over(alices: Client, ramp: Ramp, now: datetime):
    roll_back_ramp(ramp=ramp, reason="bad", now=now)
    answer = alices.post(url(ramp, "hold_ramp"), follow=True)
    assert "The ramp of revision 2 has ended: rolled back." in answer.content.decode()


def test_viewer_sees_the_ramp_without_buttons(browser_of: BrowserOf, viewer: User, ramp: Ramp):
    browser = browser_of(viewer)
    page = text(browser, url(ramp))
    assert "Roll back" not in page
    assert "Hold" not in page
    assert browser.post(url(ramp, "roll_back_ramp")).status_code == 403


def test_revision_without_a_ramp_has_no_ramp_page(alices: Client, ramp: Ramp):
    assert alices.get(reverse("console:ramp", args=[ramp.revision.pipe_id, 1])).status_code == 404


def test_completed_step_keeps_its_last_figures(alices: Client, ramp: Ramp, now: datetime):
    raise_share(ramp=ramp, share=50, figures={"ramping": {"taken": 77}, "stable": {"taken": 99}}, now=now)
    page = text(alices, url(ramp))
    assert 'data-label="Messages">77</td>' in page
    assert 'data-label="Messages">99</td>' in page


def test_ramp_page_has_a_constant_query_count_for_any_number_of_units(
    alices: Client, ramp: Ramp, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
):
    alices.get(url(ramp))
    with django_assert_num_queries(PAGE):
        alices.get(url(ramp))
    truth = Truth(ramp.revision.pipe)
    for earlier in range(1, 4):
        truth.moved(bucket_at(now) - earlier, list(range(100)))
        truth.fact(bucket_at(now) - earlier, "ramp:25:2", "sent", list(range(100)))
    with django_assert_num_queries(PAGE):
        alices.get(url(ramp))


def test_api_returns_the_same_ramp(alices: Client, ramp: Ramp, bob: User, now: datetime):
    hold_ramp(ramp=ramp, by=bob, now=now)
    base = f"/api/v1/pipes/{ramp.revision.pipe_id}/revisions/2/ramp/"
    told = alices.get(base).json()
    assert (told["revision"], told["stable"], told["outcome"], told["held_by"]) == (2, 1, "", "bob")
    (step,) = told["steps"]
    assert (step["share"], step["ramping"]["taken"], step["ramping"]["failed"]) == (25, 10, 3)
    taken = alices.get(f"{base}taken/?bin=dead").json()
    assert (taken["bins"], len(taken["units"])) == ({"delivered": 7, "dead": 3}, 3)
    assert alices.get(f"{base}taken/?bin=none").status_code == 400
    back = alices.post(f"{base}roll-back/", {"reason": "wrong field"}, content_type="application/json").json()
    assert (back["outcome"], back["ended_by"]) == ("rolled back", "alice")
    assert back["reason"] == "rolled back at 25 % of the keys by alice: wrong field"
    again = alices.post(f"{base}hold/", {}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "ramp-over")
