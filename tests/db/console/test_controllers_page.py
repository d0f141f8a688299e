"""Controllers page: staff pause and resume controllers with a reason; other users get 404."""

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from controlplane.leases import acquire
from mgmt.models import Cell, Pause, User
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
PAGE = 8


@pytest.fixture
def admin(browser_of: BrowserOf) -> Client:
    Cell.objects.create(id="c1")
    return browser_of(User.objects.create_superuser("admin"))


def paused(admin: Client, **fields: str) -> Client:
    posted = {"controller": "provision", "cell": "", "for": "1 h", "reason": "audit of the books"} | fields
    admin.post("/staff/pause/", posted)
    return admin


def test_non_staff_users_get_404(browser_of: BrowserOf, alice: User, client: Client):
    assert browser_of(alice).get("/staff/").status_code == 404
    assert browser_of(alice).post("/staff/pause/", {"controller": "scale", "reason": "x"}).status_code == 404
    assert client.get("/staff/")["Location"] == "/sign-in/?next=/staff/"
    assert not Pause.objects.exists()


def test_pause_is_shown_with_its_reason_until_it_is_ended(admin: Client):
    page = paused(admin).get("/staff/").content.decode()
    assert "paused on all cells" in page
    assert "audit of the books" in page
    admin.post(f"/staff/pauses/{Pause.objects.get().id}/end/")
    assert "paused on all cells" not in admin.get("/staff/").content.decode()


def test_pause_of_one_cell_names_the_cell(admin: Client):
    assert "paused on c1" in paused(admin, cell="c1").get("/staff/").content.decode()


@pytest.mark.parametrize(
    ("fields", "says"), [({"reason": ""}, "reason: needs"), ({"controller": "x"}, "controller: needs")]
)
def test_missing_field_is_reported_and_input_is_kept(admin: Client, fields: dict[str, str], says: str):
    answer = admin.post("/staff/pause/", {"controller": "scale", "for": "4 h", "reason": "kept text"} | fields)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert "option selected>4 h" in answer.content.decode()


def test_duplicate_pause_is_refused_with_the_reason(admin: Client):
    answer = paused(admin).post("/staff/pause/", {"controller": "provision", "reason": "again"})
    assert "already paused there" in answer.content.decode()
    assert Pause.objects.count() == 1


@pytest.mark.parametrize("path", ["/staff/pauses/99999999999999999999999/end/", "/staff/pauses/1/end/"])
def test_unknown_pause_is_not_found(admin: Client, path: str):
    assert admin.post(path).status_code == 404


def test_pause_of_an_unknown_cell_is_not_found(admin: Client):
    assert admin.post("/staff/pause/", {"controller": "scale", "reason": "x", "cell": "no\x00ne"}).status_code == 404


def test_lease_holders_are_shown_with_a_constant_query_count(
    admin: Client, django_assert_num_queries: DjangoAssertNumQueries
):
    admin.get("/staff/")
    with django_assert_num_queries(PAGE):
        admin.get("/staff/")
    for number in range(2, 6):
        Cell.objects.create(id=f"c{number}")
        acquire(f"c{number}", "deploy", f"release {number}", timezone.now())
    with django_assert_num_queries(PAGE):
        assert "c5: release 5" in admin.get("/staff/").content.decode()
