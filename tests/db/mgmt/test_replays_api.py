"""Replays in the API: bodies, pagination, refusals, the account and its messages."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from dataplane.ledger.bins import Bin
from dataplane.ledger.sketch import LagSketch
from mgmt.ledger.serializers import LatencyOut, LossesOut
from mgmt.models import LagRow, Pipe, Replay, SettledOffset, User
from mgmt.replays.serializers import (
    REPLAY_DETAIL_EXAMPLE,
    REPLAY_LOSSES_EXAMPLE,
    REPLAY_TIMING_EXAMPLE,
    REPLAY_UNITS_EXAMPLE,
    ReplayDetailOut,
    ReplayUnitsOut,
)
from mgmt.replays.services import repeats
from mgmt.services import pause_pipe
from tests.db.cast import MakeClient
from tests.db.replays import SINCE, UNTIL, a_replay, publish, replay_fact, replay_facts

BODY = {"since": SINCE.isoformat(), "until": UNTIL.isoformat()}


@pytest.fixture
def client(alice: User, client_of: MakeClient) -> APIClient:
    return client_of(alice)


@pytest.fixture
def base(pipe: Pipe) -> str:
    publish(pipe)
    now = timezone.now().replace(microsecond=0)
    BODY.update(since=(now - timedelta(hours=4)).isoformat(), until=(now - timedelta(hours=1)).isoformat())
    return f"/api/v1/pipes/{pipe.id}/replays/"


def test_replay_is_started_paused_resumed_and_aborted(client: APIClient, base: str):
    body = BODY | {
        "destinations": ["crm"],
        "where": "true",
        "keys": ["a"],
        "ids": ["m"],
        "revisions": [2],
        "rate_per_s": 5,
        "revision": 1,
    }
    answer = client.post(base, body)
    made = answer.json()
    assert answer.status_code == 201
    assert answer["Location"] == f"{base}{made['id']}/"
    shown = ("state", "revision", "destinations", "where", "keys", "ids", "revisions", "by")
    assert {name: made[name] for name in shown} == {
        "state": "running",
        "revision": 1,
        "destinations": ["crm"],
        "where": "true",
        "keys": ["a"],
        "ids": ["m"],
        "revisions": [2],
        "by": "alice",
    }
    assert (made["started_at"], made["share"], made["expected_end"], made["rehearsal"]) == (None, None, None, False)
    one = f"{base}{made['id']}/"
    assert client.post(f"{one}pause/").json()["state"] == "paused"
    assert client.post(f"{one}pause/").status_code == 200
    assert client.post(f"{one}resume/").json()["state"] == "running"
    assert client.post(f"{one}abort/").json()["state"] == "aborting"
    assert client.post(f"{one}abort/").json()["state"] == "aborting"
    assert client.post(f"{one}repeat-failed/").json()["code"] == "replay-under-way"


def test_second_replay_of_a_tenant_is_a_conflict(client: APIClient, base: str):
    first = client.post(base, BODY).json()
    answer = client.post(base, BODY)
    assert (answer.status_code, answer.json()["code"]) == (409, "replay-under-way")
    assert first["id"] in answer.json()["detail"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"since": None}, "since"),
        ({"until": "2000-01-01T00:00:00Z"}, "until"),
        ({"until": "2999-01-01T00:00:00Z"}, "until"),
        ({"since": "2000-01-01T00:00:00Z"}, "since"),
        ({"revision": 0}, "revision"),
        ({"revision": 2}, "revision"),
        ({"destinations": ["erp"]}, "destinations"),
        ({"where": "body.("}, "where"),
        ({"rate_per_s": 0}, "rate_per_s"),
        ({"rate_per_s": 1e9}, "rate_per_s"),
        ({"keys": ["k"] * 1_001}, "keys"),
        ({"ids": ["m"] * 10_001}, "ids"),
        ({"speed": 1}, "speed"),
    ],
)
def test_invalid_replay_is_a_400_that_names_the_field(
    client: APIClient, base: str, changes: dict[str, Any], field: str
):
    answer = client.post(base, BODY | changes)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert answer.json()["errors"][0]["pointer"].startswith(f"#/{field}")
    assert not Replay.objects.exists()


def test_pipe_that_cannot_deliver_is_a_conflict(client: APIClient, base: str, pipe: Pipe):
    pause_pipe(pipe=pipe)
    assert client.post(base, BODY).json()["code"] == "pipe-paused"
    assert client.post(base, BODY | {"rehearsal": True}).status_code == 201


def test_replays_are_listed_newest_first_with_few_queries(
    client: APIClient, base: str, pipe: Pipe, django_assert_num_queries: DjangoAssertNumQueries
):
    made = []
    for _ in range(5):
        made.append(a_replay(pipe).id)
        Replay.objects.update(state="done")
        with django_assert_num_queries(5):
            assert client.get(base).status_code == 200
    first = client.get(base, {"limit": 3}).json()
    rest = client.get(first["next"]).json()
    assert [one["id"] for one in first["results"] + rest["results"]] == made[::-1]
    assert client.get(base, {"limit": 201}).json()["code"] == "parameter-invalid"
    assert client.get(base, {"state": "done"}).json()["code"] == "parameter-invalid"


def test_replay_has_its_account_by_destination(
    client: APIClient, base: str, pipe: Pipe, django_assert_num_queries: DjangoAssertNumQueries
):
    row = a_replay(pipe)
    replay_facts(row, range(10), delivered=range(6), dead=[6])
    replay_fact(row, "ingest", "sent", [20], "seen")
    replay_fact(row, "route", "filtered", [20])
    with django_assert_num_queries(10):
        found = client.get(f"{base}{row.id}/").json()
    assert found["account"] == {
        "is_final": False,
        "asked": 10,
        "bins": {"delivered": 6, "dead": 1, "queued": 3, "filtered": 1},
        "destinations": {"crm": {"delivered": 6, "dead": 1, "queued": 3}, "": {"filtered": 1}},
    }
    Replay.objects.update(
        state="done", result_at=row.created_at, result={"asked": 2, "bins": {"crm": {"delivered": 2}}, "nodes": []}
    )
    with django_assert_num_queries(5):
        found = client.get(f"{base}{row.id}/").json()
    assert (found["account"]["is_final"], found["account"]["bins"]) == (True, {"delivered": 2})


def test_messages_of_a_bin_are_listed_with_their_positions(
    client: APIClient, base: str, pipe: Pipe, django_assert_num_queries: DjangoAssertNumQueries
):
    row = a_replay(pipe)
    replay_facts(row, range(10), delivered=range(6), dead=[6])
    with django_assert_num_queries(10):
        found = client.get(f"{base}{row.id}/units/").json()
    assert (found["bin"], found["more"]) == ("dead", 0)
    assert [(one["position"], one["destination"]) for one in found["results"]] == [("1-0-6", "crm")]
    found = client.get(f"{base}{row.id}/units/", {"bin": "delivered", "limit": "2"}).json()
    assert (len(found["results"]), found["more"]) == (2, 4)
    for purpose in ("ingest", "egress"):
        SettledOffset.objects.create(topic=f"penstock.c1.{purpose}.g1", partition=0, offset=100)
    lost = client.get(f"{base}{row.id}/units/", {"bin": "lost"}).json()["results"]
    assert (lost[0]["position"], lost[0]["last_seen"]) == ("1-0-7", "transform:crm")
    assert client.get(f"{base}{row.id}/units/", {"bin": "gone"}).json()["errors"][0]["parameter"] == "bin"


def test_losses_of_a_replay_name_each_message_and_where_it_was_last_seen(client: APIClient, base: str, pipe: Pipe):
    row = a_replay(pipe)
    replay_facts(row, range(10), delivered=range(8))
    assert client.get(f"{base}{row.id}/losses/").json()["loss"]["lost"] == 0, "queued messages are not lost"
    for purpose in ("ingest", "egress"):
        SettledOffset.objects.create(topic=f"penstock.c1.{purpose}.g1", partition=0, offset=100)
    found = client.get(f"{base}{row.id}/losses/", {"limit": 1}).json()
    assert (found["loss"]["due"], found["loss"]["lost"], found["loss"]["share"]) == (10, 2, 0.2)
    nodes = {one["node"]: one["lost"] for one in found["loss"]["nodes"]}
    assert nodes["transmit:crm"] == 2
    (first,) = found["results"]
    (second,) = client.get(f"{base}{row.id}/losses/", {"offset": found["next_offset"]}).json()["results"]
    assert [first["position"], second["position"]] == ["1-0-8", "1-0-9"]
    assert client.get(f"{base}{row.id}/losses/", {"offset": -1}).json()["errors"][0]["parameter"] == "offset"


def test_timing_of_a_replay_is_that_of_its_own_messages(client: APIClient, base: str, pipe: Pipe):
    row = a_replay(pipe)
    for account, took_us in ((row.id, 7_000), (pipe.id, 900_000)):
        sketch = LagSketch()
        sketch.add([took_us])
        place = {"pipe_id": account, "bucket": row.bucket, "node": "transmit:crm", "audit_partition": 0}
        LagRow.objects.create(**place, own=sketch.encode())
    found = client.get(f"{base}{row.id}/timing/").json()
    (node,) = found["nodes"]
    assert node["node"] == "transmit:crm"
    assert node["process_duration"]["max_us"] == 7_000
    assert "range" not in found


def test_failed_events_are_repeated(client: APIClient, base: str, pipe: Pipe, monkeypatch: pytest.MonkeyPatch):
    row = a_replay(pipe)
    replay_facts(row, range(10), delivered=range(6), dead=[6])
    Replay.objects.update(state="done")
    monkeypatch.setattr(repeats.repeat_failed, "__kwdefaults__", {"read_ids": lambda _row, found: ["m"] * len(found)})
    answer = client.post(f"{base}{row.id}/repeat-failed/")
    assert (answer.status_code, answer.json()["repeats"], answer.json()["ids"]) == (201, row.id, ["m"])
    Replay.objects.update(state="done")
    nothing = client.post(f"{base}{answer.json()['id']}/repeat-failed/")
    assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing-to-replay")


def test_only_the_first_ids_are_shown(client: APIClient, base: str, pipe: Pipe):
    a_replay(pipe, ids=[f"m{number}" for number in range(250)])
    (found,) = client.get(base).json()["results"]
    assert (len(found["ids"]), found["id_count"]) == (100, 250)


def test_replay_of_another_pipe_is_not_found(client: APIClient, base: str, pipe: Pipe):
    row = a_replay(pipe)
    other = f"/api/v1/pipes/pipe_00000000000000000000/replays/{row.id}/"
    assert client.get(other).status_code == 404
    assert client.post(f"{other}abort/").status_code == 404


def test_examples_have_the_fields_of_the_answers():
    assert set(REPLAY_DETAIL_EXAMPLE) == set(ReplayDetailOut().fields)
    assert set(REPLAY_UNITS_EXAMPLE) == set(ReplayUnitsOut().fields)
    assert set(REPLAY_LOSSES_EXAMPLE) == set(LossesOut().fields)
    assert set(REPLAY_TIMING_EXAMPLE) == set(LatencyOut().fields)
    assert set(REPLAY_DETAIL_EXAMPLE["account"]["bins"]) <= set(Bin)
