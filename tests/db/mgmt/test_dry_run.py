"""POST /api/v1/pipes/dry-run/: what a spec would make of an event, and how bad ones are answered."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from mgmt.models import Pipe, PipeRevision, Tenant, User
from tests.db.cast import MakeClient, MakeSpec

URL = "/api/v1/pipes/dry-run/"


def post(client: APIClient, **body: Any) -> Any:
    return client.post(URL, body, format="json")


@pytest.fixture
def alices(tenant: Tenant, alice: User, client_of: MakeClient) -> APIClient:
    return client_of(alice)


def test_it_shows_nodes_and_requests_and_writes_nothing(alices: APIClient, a_spec: MakeSpec):
    spec = {**a_spec(), "normalize": [{"op": "filter", "when": "body.total > 100"}]}
    answer = post(alices, spec=spec, event={"total": 120.5})
    assert answer.status_code == 200, answer.content
    shown = answer.json()
    assert [node["node"] for node in shown["nodes"]] == ["normalize", "transform:crm"]
    assert shown["nodes"][0]["results"][0]["outcome"] == "passed"
    assert shown["requests"][0]["body"] == '{"total":120.5}'
    assert not Pipe.objects.exists()
    assert not PipeRevision.objects.exists()


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        pytest.param(
            {"normalize": [{"op": "filter", "when": "body.total >> 1"}]},
            "#/spec/normalize/0/when",
            "line 1, column 13: needs a value, got `>`",
            id="an expression",
        ),
        pytest.param(
            {"normalize": [{"op": "remove", "path": "a..b"}]},
            "#/spec/normalize/0/path",
            "needs a path of names with dots between them, such as order.total",
            id="a path",
        ),
    ],
)
def test_a_spec_that_cannot_run_is_422_with_its_field_and_words(
    alices: APIClient, a_spec: MakeSpec, body: dict[str, Any], pointer: str, words: str
):
    answer = post(alices, spec={**a_spec(), **body}, event={})
    assert answer.status_code == 422
    assert answer.json()["code"] == "spec-invalid"
    assert (answer.json()["errors"][0]["pointer"], answer.json()["errors"][0]["detail"]) == (pointer, words)


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        pytest.param({"source": "nobody"}, "#/source", id="unknown source"),
        pytest.param({"extra": 1}, "#/extra", id="unknown field"),
    ],
)
def test_what_is_wrong_beside_the_spec_is_400(alices: APIClient, a_spec: MakeSpec, more: dict[str, Any], pointer: str):
    answer = post(alices, **{"spec": a_spec(), "event": {}, **more})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_an_event_that_cannot_be_written_is_400(alices: APIClient, a_spec: MakeSpec):
    body = json.dumps({"spec": a_spec(), "event": "\ud800"})
    answer = alices.generic("POST", URL, body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "#/event")


def test_the_event_must_be_there(alices: APIClient, a_spec: MakeSpec):
    assert post(alices, spec=a_spec()).json()["errors"][0]["pointer"] == "#/event"


def test_hashes_are_those_of_the_pipes_tenant(alices: APIClient, pipe: Pipe, a_spec: MakeSpec):
    spec = {**a_spec(), "normalize": [{"op": "mask", "path": "mail", "how": "hash"}]}
    with_pipe = [post(alices, spec=spec, event={"mail": "ada"}, pipe=pipe.id).json() for _ in range(2)]
    without = post(alices, spec=spec, event={"mail": "ada"}).json()
    bodies = [shown["requests"][0]["body"] for shown in (*with_pipe, without)]
    assert bodies[0] == bodies[1] != bodies[2]
    assert "ada" not in bodies[0]


def test_anothers_pipe_is_not_found(charlie: User, client_of: MakeClient, pipe: Pipe, a_spec: MakeSpec):
    assert post(client_of(charlie), spec=a_spec(), event={}, pipe=pipe.id).status_code == 404
