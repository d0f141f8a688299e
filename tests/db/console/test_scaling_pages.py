"""Scaling pages: staff see each group's load and last decision, and set the limits of its size."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.cells.services.capacity_tests import store_capacity_results
from mgmt.cells.services.control import note
from mgmt.models import CapacityResult, Cell, ControlAction, ScaleGroup, User
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
LIST, GROUP = 7, 6
SEEN = {"lanes": 2, "cpu": 1.3, "came": 840.0, "settled": 800.0, "backlog": 1_200, "lag_s": 1.5}


@pytest.fixture
def admin(browser_of: BrowserOf) -> Client:
    cell = Cell.objects.create(id="c1")
    ScaleGroup.objects.create(cell=cell, kind="process", maximum=4, why="CPU 65% of a core in each lane", seen=SEEN)
    return browser_of(User.objects.create_superuser("admin"))


def policy(**changes: str) -> dict[str, str]:
    return {"minimum": "2", "maximum": "6", "target": "60", "goal": "2.5"} | changes


def test_non_staff_users_get_404(browser_of: BrowserOf, alice: User, admin: Client):
    assert browser_of(alice).get("/staff/scaling/").status_code == 404
    assert browser_of(alice).post("/staff/scaling/c1/process/", policy()).status_code == 404
    assert ScaleGroup.objects.get().maximum == 4


def test_group_shows_its_load_and_last_decision(admin: Client):
    page = admin.get("/staff/scaling/").content.decode()
    assert "CPU 65% of a core in each lane" in page
    assert "65.0" in page
    assert "1 to 4" in page


def test_unmeasured_cell_shows_the_command_of_the_capacity_test(admin: Client):
    page = admin.get("/staff/scaling/").content.decode()
    assert "manage.py rate_traffic --cell c1" in page


def test_newest_capacity_test_shows_capacity_bottleneck_and_age(admin: Client):
    cell, now = Cell.objects.get(), timezone.now()
    rated = {"group": "process", "units": 1, "at_least": False, "cpu_us": 61.4}
    common: dict[str, Any] = {"cell": cell, "master": "local[2]", "batch": 1, "by": User.objects.get()}
    for age, per_s, limit in (
        (timedelta(days=2), 111.0, "an older limit"),
        (timedelta(hours=3), 3_223.0, "the machine"),
    ):
        store_capacity_results(rated=[rated | {"per_s": per_s}], bottleneck=limit, now=now - age, **common)
    page = admin.get("/staff/scaling/").content.decode()
    assert "3\u202f223" in page
    assert "61\u202fµs" in page.replace("&#8239;", "\u202f")
    assert "the machine" in page
    assert "3\u202fh ago by admin" in page
    assert "an older limit" not in page
    assert "Not measured yet" not in page
    assert "at least</span>" not in page
    CapacityResult.objects.update(at_least=True, release="of the past")
    page = admin.get("/staff/scaling/").content.decode()
    assert "at least</span>" in page
    assert "not the running release" in page


def test_lane_ceiling_is_explained(admin: Client):
    ScaleGroup.objects.update(memory={"ceiling": 0.5})
    assert "Lanes do not exceed 50.0" in admin.get("/staff/scaling/c1/process/").content.decode()


def test_policy_is_stored_and_the_audit_names_its_author(admin: Client):
    assert admin.post("/staff/scaling/c1/process/", policy()).status_code == 302
    group = ScaleGroup.objects.get()
    assert (group.minimum, group.maximum, group.target, group.goal_s) == (2, 6, 0.6, 2.5)
    row = ControlAction.objects.get()
    assert (row.action, row.cell_id, str(row.author)) == ("scale-policy", "c1", "admin")
    assert "2 to 6 process lanes" in admin.get("/staff/scaling/c1/process/").content.decode()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"minimum": "0"}, "minimum: needs 1 to 64, got 0"),
        ({"maximum": "1"}, "maximum: needs 2 to 64, got 1"),
        ({"target": "nan"}, "target: needs 5 to 100 % of a core"),
        ({"target": "101"}, "target: needs 5 to 100 % of a core"),
        ({"goal": "0"}, "goal: needs more than 0"),
        ({"goal": "soon"}, "goal: needs a number"),
        ({"minimum": "1e400"}, "minimum: needs a whole number"),
        ({"minimum": "1.5"}, "minimum: needs a whole number"),
    ],
)
def test_invalid_policy_is_refused_and_input_is_kept(admin: Client, changes: dict[str, str], says: str):
    answer = admin.post("/staff/scaling/c1/process/", policy(**changes))
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert f'value="{next(iter(changes.values()))}"' in answer.content.decode()
    assert ScaleGroup.objects.get().maximum == 4


@pytest.mark.parametrize("path", ["c9/process", "c1/nobody", "c1/proc%00ess"])
def test_unknown_group_is_not_found(admin: Client, path: str):
    assert admin.get(f"/staff/scaling/{path}/").status_code == 404


def test_pages_have_a_constant_query_count_for_any_number_of_cells(
    admin: Client, django_assert_num_queries: DjangoAssertNumQueries
):
    for number in range(2, 6):
        cell = Cell.objects.create(id=f"c{number}")
        ScaleGroup.objects.create(cell=cell, kind="process", maximum=4)
        note(
            "scale",
            "scale-out",
            outcome=ControlAction.Outcome.DONE,
            at=timezone.now(),
            cell="c1",
            detail={"kind": "process"},
        )
    admin.get("/staff/scaling/")
    with django_assert_num_queries(LIST):
        admin.get("/staff/scaling/")
    with django_assert_num_queries(GROUP):
        admin.get("/staff/scaling/c1/process/")
