"""Control-plane API: staff see cells, pause controllers and read the audit; other users get 404."""

from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.leases import acquire
from mgmt.models import Cell, CellVerdict, Pipe, Tenant, User
from tests.db.cast import MakeClient
from tests.db.console.truth import go_live

pytestmark = pytest.mark.django_db
BASE = "/api/v1/staff"
PAUSE: dict[str, Any] = {"controller": "provision", "reason": "audit of the books"}


@pytest.fixture
def admin(client_of: MakeClient) -> APIClient:
    Cell.objects.create(id="c1")
    return client_of(User.objects.create_superuser("admin"))


def posted(client: APIClient, path: str, body: dict[str, Any] | None = None) -> Any:
    return client.post(f"{BASE}/{path}", body or {}, format="json")


def test_pause_is_created_listed_and_ended(admin: APIClient):
    made = posted(admin, "pauses/", PAUSE | {"cell": "c1"})
    assert made.status_code == 201
    said = made.json()
    assert (said["controller"], said["cell"], said["by"], said["until"]) == ("provision", "c1", "admin", None)
    assert [one["id"] for one in admin.get(f"{BASE}/pauses/").json()] == [said["id"]]
    for _ in range(2):
        assert posted(admin, f"pauses/{said['id']}/end/").json()["ended_at"] is not None
    assert admin.get(f"{BASE}/pauses/").json() == []


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"controller": "observe"}, 400),
        ({"reason": ""}, 400),
        ({"until": "2020-01-01T00:00:00Z"}, 400),
        ({"cell": "none"}, 404),
        ({"extra": 1}, 400),
    ],
)
def test_invalid_pause_is_refused(admin: APIClient, changed: dict[str, Any], status: int):
    assert posted(admin, "pauses/", PAUSE | changed).status_code == status


def test_second_pause_of_the_same_controller_is_a_conflict(admin: APIClient):
    codes = [posted(admin, "pauses/", PAUSE).json().get("code") for _ in range(2)]
    assert codes == [None, "paused-already"]


def test_cells_include_their_verdict_lease_and_pauses(admin: APIClient):
    now = timezone.now()
    acquire("c1", "deploy", "release 7", now)
    CellVerdict.objects.create(cell_id="c1", state="unstable", reasons=["process-0 is silent"], since=now, at=now)
    posted(admin, "pauses/", PAUSE)
    (cell,) = admin.get(f"{BASE}/cells/").json()
    assert (cell["id"], cell["lanes"]["process"], cell["heard"]) == ("c1", 1, {})
    assert cell["verdict"]["reasons"] == ["process-0 is silent"]
    assert cell["lease"]["what"] == "release 7"
    assert [pause["reason"] for pause in cell["pauses"]] == ["audit of the books"]


def test_cell_is_added_and_dedicated_to_a_tenant(admin: APIClient, tenant: Tenant):
    made = posted(admin, "cells/", {"name": "own"})
    assert (made.status_code, made.json()["asleep"], made.json()["dedicated_to"]) == (201, False, None)
    kept = posted(admin, "cells/own/keep/", {"tenant": tenant.id, "sleeps_after_s": 900}).json()
    assert (kept["dedicated_to"], kept["sleeps_after_s"]) == (tenant.id, 900)
    assert posted(admin, "cells/own/keep/", {"tenant": None}).json()["dedicated_to"] is None
    for path, body, status in (
        ("cells/", {"name": "own"}, 400),
        ("cells/own/keep/", {"tenant": None, "sleeps_after_s": 900}, 400),
        ("cells/own/keep/", {"tenant": "nobody"}, 404),
        ("cells/none/keep/", {"tenant": tenant.id}, 404),
        ("cells/own/keep/", {}, 400),
    ):
        assert posted(admin, path, body).status_code == status, (path, body)


def test_audit_is_paginated_and_filtered_by_controller(admin: APIClient):
    for _ in range(2):
        made = posted(admin, "pauses/", PAUSE).json()
        posted(admin, f"pauses/{made['id']}/end/")
    first = admin.get(f"{BASE}/actions/", {"limit": 3}).json()
    assert [one["action"] for one in first["results"]] == ["resume-provision", "pause-provision", "resume-provision"]
    assert [one["action"] for one in admin.get(first["next"]).json()["results"]] == ["pause-provision"]
    assert admin.get(f"{BASE}/actions/", {"controller": "deploy"}).json()["results"] == []
    assert admin.get(f"{BASE}/actions/", {"controller": "x"}).json()["code"] == "parameter-invalid"


def test_pipe_migration_is_requested_and_given_up(admin: APIClient, pipe: Pipe):
    go_live(pipe)
    Cell.objects.create(id="c2")
    body = {"pipe": pipe.id, "cell": "c2", "reason": "c1 is full"}
    made = posted(admin, "relocations/", body)
    assert made.status_code == 201
    said = made.json()
    assert (said["from_cell"], said["to_cell"], said["state"], said["by"]) == ("c1", "c2", "requested", "admin")
    assert posted(admin, "relocations/", body).json()["code"] == "relocation-under-way"
    assert posted(admin, "relocations/", body | {"cell": "none"}).status_code == 404
    assert [one["id"] for one in admin.get(f"{BASE}/relocations/").json()["results"]] == [said["id"]]
    for _ in range(2):
        assert posted(admin, f"relocations/{said['id']}/give-up/").json()["says"] == "cancelled by admin"


def test_refused_migration_names_the_reason_that_binds_the_pipe_to_its_cell(admin: APIClient, pipe: Pipe):
    go_live(pipe)
    Cell.objects.create(id="c2")
    pipe.destinations.update(config={"type": "lake"})
    refused = posted(admin, "relocations/", {"pipe": pipe.id, "cell": "c2", "reason": "c1 is full"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not-movable")
    assert "destination crm is a lake" in refused.json()["detail"]
