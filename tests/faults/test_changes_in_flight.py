"""Changes while messages are in flight: revisions, destinations, the schema of a source."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings
from rest_framework.test import APIClient

from controlplane.control_topic import ControlTopic
from controlplane.provisioner.records import desired_records
from dataplane.ledger.bins import Bin
from dataplane.spec import PipeSpec, parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord, schema_key
from mgmt.models import Pipe, User
from mgmt.services import create_pipe, create_tenant
from tests.support.cluster import TENANT
from tests.support.lane_plane import LanePlane
from tests.support.patience import until

pytestmark = pytest.mark.timeout(1_200)
APART_S: Final = 10.0  # between the first and the last process that applies a new record
ENOUGH: Final = 20  # messages of a revision that show that it is in use
WAITING: Final = 200
RATE: Final = 100.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanePlane]:
    running = LanePlane(Path(tmp_path_factory.mktemp("changes")))
    running.wait_ready()
    yield running
    running.close()


def marking(url: str, revision: int) -> PipeSpec:
    """Return a spec that sets the revision's number at its first step and, in another field, at its last."""
    spec = {
        "sources": {"shop": {}},
        "destinations": {"crm": {"type": "http", "url": url}},
        "normalize": [{"op": "set", "path": "first", "value": revision}],
        "transform": {"crm": [{"op": "set", "path": "last", "value": revision}]},
    }
    return parse_pipe_spec(spec)


def switch(plane: LanePlane, times: int) -> None:
    """Alternate two revisions under load: each message is processed by one of them entirely and arrives once."""
    pipe = f"switched-{times}"
    url, cluster, got = plane.receiver.url(f"/{pipe}"), plane.cluster, plane.receiver.got[f"/{pipe}"]
    key = plane.add_pipe(pipe, {"crm": {"url": url}})
    cluster.publish(*(PlanRecord(pipe, revision, marking(url, revision)) for revision in (2, 3)))

    def use(revision: int) -> None:
        before = len(got)
        cluster.publish(PipeRecord(pipe, cluster.version(), TENANT, "rig", cluster.cell, "active", [(revision, 100)]))

        def is_used() -> bool:
            return [json.loads(one.body).get("last") for one in got[before:]].count(revision) >= ENOUGH

        until(is_used, f"messages of revision {revision} arrive", APART_S + ENOUGH / RATE)

    with plane.sender(key, RATE) as sender:
        for number in range(times):
            use(2 + number % 2)
    whole = plane.settled(pipe, sender.positions)
    bodies = [json.loads(one.body) for one in got]
    assert all(body.get("first") == body.get("last") for body in bodies), "a message was processed by two revisions"
    assert {body.get("last") for body in bodies} >= {2, 3}
    assert Counter(one.position for one in got) == Counter(sender.positions), "each is delivered exactly once"
    assert whole.at("crm", Bin.DELIVERED) == sender.positions
    assert whole.lost() == 0


def test_each_message_is_processed_by_one_revision_despite_repeated_switches(plane: LanePlane):
    switch(plane, 20)


@pytest.mark.long
def test_each_message_is_processed_by_one_revision_despite_200_switches(plane: LanePlane):
    switch(plane, 200)


def test_destination_removed_under_load_cancels_its_waiting_messages_and_nothing_else(plane: LanePlane):
    plane.receiver.answers["/gone"] = 503
    gone = {"url": plane.receiver.url("/gone"), "retry": {"local_tries": 1, "delays_s": [5]}}
    key = plane.add_pipe("removed", {"gone": gone, "crm": {"url": plane.receiver.url("/stays")}})
    with plane.sender(key, RATE) as sender:
        until(lambda: len(plane.whole("removed").at("gone", Bin.RETRYING)) >= WAITING, "many wait for a retry", 60)
        plane.cluster.publish_destinations("removed", {"gone": gone}, state="removed")
        until(lambda: len(plane.whole("removed").at("gone", Bin.CANCELLED)) >= WAITING, "they are cancelled", 60)
        tried = len(plane.receiver.got["/gone"])
    whole = plane.settled("removed", sender.positions)
    assert whole.at("gone", Bin.CANCELLED) == sender.positions == whole.at("crm", Bin.DELIVERED)
    assert {one.position for one in plane.receiver.got["/stays"]} == sender.positions
    assert len(plane.receiver.got["/gone"]) == tried, "nothing more is sent to it"
    assert whole.lost() == 0


SENT: Final = {"n": {"type": "integer"}, "note": {"type": "string"}}


def shape(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


class Registering:
    """Owner who registers schemas by the API; their records are published to the plane as usual."""

    def __init__(self, plane: LanePlane) -> None:
        owner = User.objects.create_user("alice")
        spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/"}}}
        tenant = create_tenant(name="Alice's", owner=owner)
        self.pipe: Pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=owner)
        self._client = APIClient()
        self._client.force_login(owner)
        self._control = ControlTopic(plane.broker.address)

    def register(self, schema: dict[str, Any]) -> Any:
        url = f"/api/v1/pipes/{self.pipe.id}/sources/shop/schemas/"
        answer = self._client.post(url, {"schema": schema}, format="json")
        self._control.refresh()
        self._control.publish(desired_records([schema_key(self.pipe.id, "shop")]).records)
        return answer

    def close(self) -> None:
        self._control.close()


@pytest.mark.django_db
def test_wider_schema_applies_within_seconds_and_a_schema_that_breaks_a_sender_is_refused(
    plane: LanePlane, settings: Settings
):
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    owner = Registering(plane)
    pipe, positions = owner.pipe.id, set[str]()
    key = plane.add_pipe(pipe, {"crm": {"url": plane.receiver.url("/schema")}})

    def answer_to(**event: Any) -> int:
        status, _, body = plane.post(key, json.dumps(event).encode())
        if status == 202:
            positions.add(json.loads(body)["position"])
        return status

    with plane.sender(key, RATE) as sender, closing(owner):
        assert owner.register(shape(SENT, "n")).status_code == 201
        until(lambda: answer_to(n=1, colour="red") == 422, "version 1 is heeded", APART_S)
        assert owner.register(shape(SENT | {"colour": {"type": "string"}}, "n")).status_code == 201
        until(lambda: answer_to(n=1, colour="red") == 202, "the new field is taken", APART_S)
        refused = owner.register(shape(SENT, "n", "colour"))
        assert (refused.status_code, refused.json()["code"]) == (409, "schema-breaking")
        assert any("colour: is required now" in error["detail"] for error in refused.json()["errors"])
        before = len(sender.acked)
        until(lambda: len(sender.acked) > before + WAITING, "its sender goes on", 30)
        assert answer_to(n=2, colour="blue") == 202
        assert answer_to(n=2) == 202
    assert sender.refusals == [], "an event of a running sender was refused"
    positions |= sender.positions
    whole = plane.settled(pipe, positions)
    assert whole.at("crm", Bin.DELIVERED) == positions
    assert Counter(one.position for one in plane.receiver.got["/schema"]) == Counter(positions)
    assert whole.lost() == 0
