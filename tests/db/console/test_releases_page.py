"""Releases page: staff see each cell's release and the rollout, start one and roll it back."""

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.models import Cell, Release, Rollout, RolloutStep, User
from mgmt.services import register_release, request_rollout
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
OLD, NEW = "0" * 16, "1" * 16
PAGE = 8


def release(id_: str, note: str = "") -> Release:
    return register_release(release=id_, wire=1, about=note, now=timezone.now())


@pytest.fixture
def admin(browser_of: BrowserOf) -> Client:
    Cell.objects.create(id="c1", release=release(OLD))
    release(NEW, "the next one")
    return browser_of(User.objects.create_superuser("admin"))


def page(admin: Client) -> str:
    return admin.get("/staff/releases/").content.decode()


def test_non_staff_users_get_404(browser_of: BrowserOf, alice: User, admin: Client, client: Client):
    assert browser_of(alice).get("/staff/releases/").status_code == 404
    assert browser_of(alice).post(f"/staff/releases/{NEW}/roll-out/").status_code == 404
    assert client.get("/staff/releases/")["Location"] == "/sign-in/?next=/staff/releases/"
    assert not Rollout.objects.exists()


def test_rollout_is_requested_and_its_progress_shown(admin: Client):
    assert "the next one" in page(admin)
    assert f"Roll out {OLD}" not in page(admin), "every cell runs it already"
    admin.post(f"/staff/releases/{NEW}/roll-out/")
    rollout = Rollout.objects.get()
    assert rollout.author == User.objects.get(username="admin")
    RolloutStep.objects.update(
        state="watching",
        why="running; observed for 90 s",
        touched_at=timezone.now(),
        before={"ended": 1_000, "failed": 5, "p95_us": 20_000},
        found={"ended": 400, "failed": 10, "p95_us": 38_000},
    )
    shown = page(admin)
    measured = ("0.5\u202f%", "2.5\u202f%", "20\u202fms", "38\u202fms")
    for words in ("running", "canary", "running; observed for 90 s", *measured):
        assert words in shown, words


@pytest.mark.parametrize(("fields", "is_repair"), [({}, False), ({"repair": "1"}, True)])
def test_rollout_is_a_repair_if_its_box_is_ticked(admin: Client, fields: dict[str, str], is_repair: bool):
    admin.post(f"/staff/releases/{NEW}/roll-out/", fields)
    assert Rollout.objects.get().is_repair is is_repair
    assert ('<small class="quiet">repair</small>' in page(admin)) is is_repair


def test_second_rollout_is_refused_with_a_remedy(admin: Client):
    admin.post(f"/staff/releases/{NEW}/roll-out/")
    answer = admin.post(f"/staff/releases/{NEW}/roll-out/")
    assert answer.status_code == 422
    assert "Another rollout is in progress. Wait until it ends, or roll it back." in answer.content.decode()
    assert Rollout.objects.count() == 1


def test_rollout_is_rolled_back_only_with_a_reason(admin: Client):
    rollout = request_rollout(release=Release.objects.get(id=NEW), author=None, now=timezone.now())
    assert f"Roll back {NEW}" in page(admin)
    assert admin.post(f"/staff/rollouts/{rollout.id}/roll-back/", {"reason": " "}).status_code == 422
    admin.post(f"/staff/rollouts/{rollout.id}/roll-back/", {"reason": "customers complain"})
    rollout.refresh_from_db()
    assert (rollout.state, rollout.why) == ("rolling back", "customers complain")
    assert f"Roll back {NEW}" not in page(admin)
    assert "customers complain" in page(admin)


@pytest.mark.parametrize(
    "path", ["/staff/releases/nowhere/roll-out/", "/staff/rollouts/99999999999999999999999/roll-back/"]
)
def test_unknown_release_or_rollout_is_not_found(admin: Client, path: str):
    assert admin.post(path, {"reason": "x"}).status_code == 404


def test_page_has_a_constant_query_count_for_one_rollout_and_five(
    admin: Client, django_assert_num_queries: DjangoAssertNumQueries
):
    page(admin)
    for number in range(5):
        Cell.objects.create(id=f"d{number}", release_id=OLD)
        row = request_rollout(release=release(f"{number + 2}" * 16), author=None, now=timezone.now())
        Rollout.objects.filter(id=row.id).update(state="done")
        if number == 0:
            with django_assert_num_queries(PAGE):
                page(admin)
    with django_assert_num_queries(PAGE):
        page(admin)
