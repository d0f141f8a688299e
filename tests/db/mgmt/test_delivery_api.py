"""Pausing, redrives and alerts in the API: responses, pagination, refusals, and what is never shown."""

from datetime import UTC, datetime

import pytest
from rest_framework.test import APIClient

from mgmt.deliveries.queries.message_selection import HOUR_S
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition, add_places
from mgmt.models import Alert, Cell, DeadLetter, Destination, Pipe, Tenant, User
from tests.db.cast import MakeClient
from tests.db.console.undelivered import store_held

AT = datetime(2026, 11, 1, 12, 5, tzinfo=UTC)
DEAD = "penstock.c1.dead.g1"


@pytest.fixture
def client(alice: User, client_of: MakeClient) -> APIClient:
    return client_of(alice)


@pytest.fixture
def base(pipe: Pipe) -> str:
    """API path of the pipe, which has five dead letters."""
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    for offset in range(5):
        at_s = int(AT.timestamp())
        add_places(
            [StoredPosition(OffsetSetKey(pipe.id, "crm", "dead", "rejected", DEAD, 0, at_s // HOUR_S), offset, at_s)]
        )
        DeadLetter.objects.create(
            pipe_id=pipe.id,
            destination="crm",
            node="transmit:crm",
            cause="rejected" if offset else "gave-up",
            message_id=f"m{offset}",
            position=offset,
            bucket=1,
            revision=1,
            attempts=0,
            at=AT,
            topic=DEAD,
            partition=0,
            offset=offset,
        )
    return f"/api/v1/pipes/{pipe.id}"


def test_destination_is_paused_and_resumed(client: APIClient, base: str):
    paused = client.post(f"{base}/destinations/crm/pause/").json()
    assert (paused["destination"]["state"], paused["holds"]) == ("paused", True)
    assert client.post(f"{base}/destinations/crm/pause/").status_code == 200
    assert client.post(f"{base}/destinations/crm/resume/").json()["destination"]["state"] == "active"
    Destination.objects.update(state="removed")
    assert client.post(f"{base}/destinations/crm/resume/").json()["code"] == "destination-removed"


def test_pipe_is_paused_and_resumed_unless_it_is_closed(client: APIClient, base: str):
    assert client.post(f"{base}/pause/").json()["state"] == "paused"
    assert client.get(f"{base}/standings/").json()[0]["holds"] is True
    assert client.post(f"{base}/resume/").json()["state"] == "active"
    client.post(f"{base}/close/")
    assert client.post(f"{base}/pause/").json()["code"] == "pipe-closed"


def test_dead_letters_are_paginated_and_filtered(client: APIClient, base: str):
    first = client.get(f"{base}/dead-letters/?limit=3").json()
    rest = client.get(first["next"]).json()
    assert [one["message_id"] for one in first["results"] + rest["results"]] == ["m4", "m3", "m2", "m1", "m0"]

    def count(query: str) -> int:
        return len(client.get(f"{base}/dead-letters/?{query}").json()["results"])

    assert [count("cause=gave-up"), count("message_id=m3"), count("since=2026-11-01T13:00:00Z"), count("key=")] == [
        1,
        1,
        0,
        5,
    ]
    assert client.get(f"{base}/dead-letters/?since=yesterday").json()["code"] == "parameter-invalid"


def test_held_messages_are_paginated_and_filtered(client: APIClient, base: str, pipe: Pipe):
    store_held(pipe, range(100, 105), AT)
    first = client.get(f"{base}/held-messages/?limit=3").json()
    rest = client.get(first["next"]).json()
    listed = first["results"] + rest["results"]
    assert [(one["message_id"], one["key"]) for one in listed] == [(f"m{n}", f"k{n % 2}") for n in range(104, 99, -1)]
    queries = ("key=k1", "message_id=m100", "destination=other", "since=2026-11-01T13:00:00Z")
    found = [len(client.get(f"{base}/held-messages/?{query}").json()["results"]) for query in queries]
    assert found == [2, 1, 0, 0]
    assert client.get(f"{base}/held-messages/?cause=rejected").json()["errors"][0]["parameter"] == "cause"
    made = client.post(f"{base}/moves/", {"destination": "crm", "kind": "held", "ids": ["m100"]}).json()
    assert (made["what"], made["total"]) == ("release", 1)
    assert len(client.get(f"{base}/held-messages/").json()["results"]) == 4, "a message under release is no longer held"


def test_redrive_is_previewed_created_once_and_aborted(client: APIClient, base: str):
    chosen = {"destination": "crm", "cause": "rejected"}
    seen = client.post(f"{base}/moves/preview/", chosen).json()
    assert (seen["count"], seen["oldest"]) == (5, "2026-11-01T12:05:00Z")
    made = client.post(f"{base}/moves/", chosen)
    assert (made.status_code, made.json()["total"], made.json()["what"]) == (201, 5, "redrive")
    again = client.post(f"{base}/moves/", chosen)
    assert (again.status_code, again.json()["code"]) == (409, "nothing-to-move")
    assert client.get(made["Location"]).json()["state"] == "running"
    assert client.post(f"{made['Location']}abort/").json()["state"] == "aborting"
    assert len(client.get(f"{base}/moves/").json()["results"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"destination": "crm", "kind": "lost"},
        {"destination": "crm", "rate_per_s": 0},
        {"destination": "crm", "ids": ["m"] * 1001},
        {"destination": "crm", "offsets": {}},
        {"destination": "crm", "since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
    ],
)
def test_invalid_redrive_is_a_400_that_names_the_field(client: APIClient, base: str, body: dict[str, object]):
    answer = client.post(f"{base}/moves/", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert answer.json()["errors"][0]["pointer"].startswith("#/")


def test_credential_is_stored_and_never_shown(client: APIClient, base: str, pipe: Pipe):
    Destination.objects.update(config={"type": "http", "url": "https://a.example/", "auth": {"type": "bearer"}})
    answer = client.put(f"{base}/destinations/crm/credential/", {"value": "canary-secret"})
    assert answer.json()["has_credential"] is True
    for path in ("destinations/crm/", "destinations/", "standings/", ""):
        assert "canary-secret" not in client.get(f"{base}/{path}").content.decode()
    assert "canary-secret" not in str(list(Destination.objects.values()))
    assert client.put(f"{base}/destinations/crm/credential/", {"value": "a\nb"}).status_code == 400
    assert client.delete(f"{base}/destinations/crm/credential/").json()["has_credential"] is False


def test_alert_is_read_handled_and_resolved(client: APIClient, base: str, pipe: Pipe):
    alert = Alert.objects.create(pipe=pipe, destination="crm", cause="rejected", opened_at=AT, last_at=AT, count=5)
    assert [one["id"] for one in client.get("/api/v1/alerts/?state=opened").json()["results"]] == [alert.id]
    assert client.get("/api/v1/alerts/?state=nonsense").json()["code"] == "parameter-invalid"
    path = f"{base}/alerts/{alert.id}"
    assert client.post(f"{path}/acknowledge/").json()["acknowledged_by"] == "alice"
    assert client.post(f"{path}/snooze/", {"until": "2020-01-01T00:00:00Z"}).status_code == 400
    assert client.post(f"{path}/probe/").json()["probe"] == "running"
    assert client.post(f"{path}/probe/").json()["code"] == "alert-not-open"
    assert client.post(f"{path}/resolve/").json()["state"] == "resolved"
    assert client.post(f"{path}/acknowledge/").json()["code"] == "alert-not-open"


def test_channel_secret_is_shown_once(client: APIClient, tenant: Tenant):
    path = f"/api/v1/tenants/{tenant.id}/alert-channels/"
    made = client.post(path, {"kind": "webhook", "target": "https://hooks.example.com/x"})
    assert made.json()["secret"].startswith("whsec_")
    assert made["Cache-Control"] == "no-store"
    assert "secret" not in client.get(path).json()[0]
    assert (
        client.post(path, {"kind": "webhook", "target": "https://hooks.example.com/x"}).json()["code"] == "name-taken"
    )
    inside = client.post(path, {"kind": "webhook", "target": "http://169.254.169.254/"})
    assert (inside.status_code, inside.json()["code"]) == (422, "destination-forbidden")
    assert inside.json()["errors"][0]["pointer"] == "#/target"
    assert client.delete(f"{path}{made.json()['id']}/").status_code == 204
    assert client.get(path).json() == []
