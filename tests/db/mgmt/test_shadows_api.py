"""Shadow runs in the API: bodies, pagination, refusals, details and promotion."""

from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from mgmt.models import Pipe, Shadow, User
from mgmt.services import close_pipe, publish_revision
from mgmt.shadows.serializers import SHADOW_DETAIL_EXAMPLE, ShadowDetailOut
from mgmt.shadows.services.progress import note_shadow_progress
from tests.db.cast import MakeClient
from tests.db.replays import publish
from tests.db.shadows import a_draft, a_report, a_shadow

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(alice: User, client_of: MakeClient) -> APIClient:
    return client_of(alice)


@pytest.fixture
def base(pipe: Pipe) -> str:
    publish(pipe)
    return f"/api/v1/pipes/{pipe.id}/shadows/"


@pytest.fixture
def body(pipe: Pipe) -> dict[str, Any]:
    return {"spec": a_draft(pipe), "based_on": 1}


def test_run_is_started_read_stopped_and_promoted(client: APIClient, base: str, body: dict[str, Any], pipe: Pipe):
    answer = client.post(base, body | {"follow": True})
    made = answer.json()
    one = f"{base}{made['id']}/"
    assert (answer.status_code, answer["Location"]) == (201, one)
    assert {name: made[name] for name in ("state", "revision", "based_on", "follow", "until", "most_events", "by")} == {
        "state": "running",
        "revision": 1,
        "based_on": 1,
        "follow": True,
        "until": None,
        "most_events": 0,
        "by": "alice",
    }
    assert client.get(one).json()["spec"]["normalize"] == body["spec"]["normalize"]
    assert client.post(f"{one}stop/").json()["state"] == "stopping"
    assert client.post(f"{one}stop/").status_code == 200
    promoted = client.post(f"{one}promote/")
    assert (promoted.status_code, promoted["Location"]) == (201, f"/api/v1/pipes/{pipe.id}/revisions/2/")
    assert (promoted.json()["number"], promoted.json()["state"]) == (2, "requested")
    assert client.get(one).json()["promoted"] == 2
    again = client.post(f"{one}promote/")
    assert (again.status_code, again.json()["code"]) == (409, "revision-conflict")


def test_details_name_results_fields_samples_and_cost_as_a_customer_does(client: APIClient, base: str, pipe: Pipe):
    row = a_shadow(pipe)
    note_shadow_progress(progress=a_report(row), now=timezone.now())
    found = client.get(f"{base}{row.id}/").json()
    assert found["results"] == {"crm": {"equal": 60, "different": 10, "only_live": 5, "only_draft": 3, "not_sent": 2}}
    assert found["field_differences"] == [
        {"destination": "crm", "path": "total", "count": 9},
        {"destination": "crm", "path": "lines.*.sku", "count": 1},
    ]
    assert found["rejected"] == {"step": 4}
    first, live, draft = found["samples"]
    assert first == {
        "result": "different",
        "destination": "crm",
        "position": "1-0-1050",
        "child": 0,
        "url": f"/api/v1/pipes/{pipe.id}/messages/1-0-1050/",
        "reason": "",
        "fields": [{"path": "total", "live": '"12"', "draft": "12"}],
    }
    assert (live["result"], live["reason"]) == ("only_live", "filtered out")
    assert (draft["result"], draft["child"]) == ("only_draft", 2)
    assert found["cost"] == {"events": 4, "live_us": 50.0, "draft_us": 75.0}
    assert (found["share"], found["events"]) == (0.5, 80)
    assert "only_shadow" not in str(found)


def test_example_of_the_documentation_has_the_fields_of_an_answer(client: APIClient, base: str, pipe: Pipe):
    row = a_shadow(pipe)
    note_shadow_progress(progress=a_report(row), now=timezone.now())
    found = client.get(f"{base}{row.id}/").json()
    assert found.keys() == SHADOW_DETAIL_EXAMPLE.keys() == ShadowDetailOut().fields.keys()
    assert found["samples"][0].keys() == SHADOW_DETAIL_EXAMPLE["samples"][0].keys()
    assert found["cost"].keys() == SHADOW_DETAIL_EXAMPLE["cost"].keys()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"based_on": None}, "based_on"),
        ({"events": 0}, "events"),
        ({"events": 1_000_001}, "events"),
        ({"since": "2026-01-01T00:00:00Z"}, "until"),
        ({"since": "2999-01-01T00:00:00Z", "until": "2999-01-02T00:00:00Z"}, "until"),
        ({"follow": True, "events": 5}, "follow"),
        ({"speed": 1}, "speed"),
    ],
)
def test_invalid_run_is_a_400_that_names_the_field(
    client: APIClient, base: str, body: dict[str, Any], changes: dict[str, Any], field: str
):
    answer = client.post(base, body | changes)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert answer.json()["errors"][0]["pointer"].startswith(f"#/{field}")
    assert not Shadow.objects.exists()


def test_refusals_have_their_problems(client: APIClient, base: str, body: dict[str, Any], pipe: Pipe, alice: User):
    def code(**changes: Any) -> tuple[int, str]:
        answer = client.post(base, body | changes)
        return answer.status_code, answer.json()["code"]

    assert code(spec={**body["spec"], "normalize": [{"op": "no"}]}) == (422, "spec-invalid")
    assert code(spec=pipe.revisions.get().spec) == (409, "unchanged")
    assert code(based_on=7) == (409, "revision-conflict")
    assert client.post(base, body).status_code == 201
    assert code() == (409, "shadow-under-way")
    publish_revision(pipe=pipe, spec=body["spec"], based_on=1, author=alice)
    assert code(based_on=2) == (409, "not-comparable")
    close_pipe(pipe=pipe)
    assert code(based_on=2) == (409, "pipe-closed")


def test_starts_count_as_comparisons(
    client: APIClient, base: str, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mgmt.web.throttling.hit", lambda limit, *_: 9 if limit.name == "comparisons" else 0)
    assert client.post(base, body).status_code == 429
    assert client.get(base).status_code == 200


def test_runs_are_listed_newest_first_with_few_queries(
    client: APIClient, base: str, pipe: Pipe, django_assert_num_queries: DjangoAssertNumQueries
):
    made = []
    for _ in range(5):
        made.append(a_shadow(pipe).id)
        Shadow.objects.update(state="done")
        with django_assert_num_queries(5):
            assert client.get(base).status_code == 200
    first = client.get(base, {"limit": 3}).json()
    rest = client.get(first["next"]).json()
    assert [one["id"] for one in first["results"] + rest["results"]] == made[::-1]
    assert client.get(base, {"state": "done"}).json()["code"] == "parameter-invalid"
