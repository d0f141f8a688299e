"""History of a controller for staff: typed outcomes, and repeated refusals in one row."""

from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.cells.services.control import note
from mgmt.models import Cell, ControlAction, TaskRun, User
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db
HISTORY = 6
Outcome = ControlAction.Outcome


@pytest.fixture
def admin(browser_of: BrowserOf) -> Client:
    Cell.objects.create(id="c1")
    return browser_of(User.objects.create_superuser("admin"))


def refuse(at: datetime, *, cell: str = "c1", refusal: str = "cell-unstable", reason: str = "c1 is unstable") -> None:
    note("scale", "scale", outcome=Outcome.REFUSED, at=at, cell=cell, refusal=refusal, reason=reason)


def rows_of(page: str) -> list[str]:
    """Return the text of each row of the table."""
    return [plain(row) for row in page.split("<tbody>")[1].split("</tbody>", maxsplit=1)[0].split("</tr>")[:-1]]


def test_repeated_refusals_are_one_row_with_count_first_and_last_time(admin: Client, now: datetime):
    note("scale", "scale-out", outcome=Outcome.DONE, at=now - timedelta(hours=2), cell="c1", reason="lag")
    for minute in range(40, 0, -1):
        refuse(now - timedelta(minutes=minute), reason=f"c1 is unstable: {minute} lanes are silent")
    refuse(now, refusal="paused", reason="scaling is paused by admin: audit")
    note("deploy", "roll-out", outcome=Outcome.DONE, at=now, cell="c1")
    paused, folded, done = rows_of(admin.get("/staff/controllers/scale/").text)
    assert "scale refused 1 " in paused
    assert "The controller is paused scaling is paused by admin: audit" in paused
    first, last = (f"{now - timedelta(minutes=minute):%Y-%m-%d %H:%M:%S}" for minute in (40, 1))
    assert f"scale refused 40 {first} {last} c1" in folded
    assert "The cell is unstable c1 is unstable: 1 lanes are silent" in folded
    assert "scale-out done 1" in done


def test_filter_by_outcome_and_older_rows(admin: Client, now: datetime):
    for number in range(130):
        note("scale", "scale-out", outcome=Outcome.DONE, at=now, cell="c1", reason=f"number {number}")
    refuse(now)
    first = admin.get("/staff/controllers/scale/", {"outcome": "done"}).text
    assert len(rows_of(first)) == 100
    assert "refused" not in first.split("<tbody>")[1]
    oldest = ControlAction.objects.get(reason="number 30").id
    assert f"?outcome=done&amp;before={oldest}" in first
    older = admin.get(f"/staff/controllers/scale/?outcome=done&before={oldest}").text
    assert [row.rsplit(" ", 1)[1] for row in rows_of(older)][:1] == ["29"]
    assert "Older" not in older


def test_last_run_is_shown_with_its_outcome(admin: Client, now: datetime):
    assert "It has not run yet." in admin.get("/staff/controllers/deploy/").text
    since = now - timedelta(hours=1)
    TaskRun.objects.create(task="deployer.tick", at=now, outcome="failed", since=since, said="ValueError")
    page = plain(admin.get("/staff/controllers/deploy/").text)
    assert f"failed since {since:%Y-%m-%d %H:%M:%S} (ValueError)" in page


@pytest.mark.parametrize("path", ["nobody/", "person/"])
def test_unknown_controller_is_not_found(admin: Client, path: str):
    assert admin.get(f"/staff/controllers/{path}").status_code == 404


@pytest.mark.parametrize("query", ["before=x", "outcome=odd", "outcome=%00", "before=" + "9" * 40])
def test_invalid_filter_is_answered_with_200(admin: Client, query: str):
    assert admin.get(f"/staff/controllers/scale/?{query}").status_code == 200


def test_audit_filters_by_the_typed_outcome_and_names_the_type_of_a_refusal(admin: Client, now: datetime):
    refuse(now)
    note("scale", "scale-out", outcome=Outcome.DONE, at=now, cell="c1")
    page = admin.get("/staff/audit/", {"outcome": "refused"}).text
    assert "The cell is unstable" in page
    assert "scale-out" not in page.split("<tbody>")[1]
    assert '<option value="rolled back">rolled back</option>' in page


@pytest.mark.parametrize(
    ("outcome", "refusal", "name"),
    [
        ("turned back", "", "an_action_has_a_known_outcome"),
        ("refused", "", "only_a_refusal_has_a_type_of_reason"),
        ("done", "paused", "only_a_refusal_has_a_type_of_reason"),
    ],
)
def test_database_accepts_only_typed_outcomes(now: datetime, outcome: str, refusal: str, name: str):
    row = ControlAction(at=now, controller="scale", action="scale", outcome=outcome, refusal=refusal)
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        row.save()


def test_history_has_a_constant_query_count_for_few_rows_and_many(
    admin: Client, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
):
    refuse(now)
    admin.get("/staff/controllers/scale/")
    with django_assert_num_queries(HISTORY):
        admin.get("/staff/controllers/scale/")
    for number in range(30):
        Cell.objects.create(id=f"d{number}")
        refuse(now, cell=f"d{number}")
        note("scale", "scale-out", outcome=Outcome.DONE, at=now, cell=f"d{number}")
    with django_assert_num_queries(HISTORY):
        admin.get("/staff/controllers/scale/")
