"""POST /api/v1/pipes/dry-run/: the results of a spec for one event, and the errors for bad input."""

import json
from typing import Any

import pytest
from pyroaring import BitMap64
from pytest_django import Settings
from rest_framework.test import APIClient

from dataplane.ledger.units import UnitPosition, position_of
from mgmt import sandbox
from mgmt.messages.queries.last_event import last_place
from mgmt.models import Cell, FactRow, Pipe, PipeRevision, Tenant, Topic, User
from mgmt.sandbox import SandboxBusy, TooManyAtOnce
from tests.db.cast import MakeClient, MakeSpec

URL = "/api/v1/pipes/dry-run/"


def post(client: APIClient, **body: Any) -> Any:
    return client.post(URL, body, format="json")


@pytest.fixture
def alices(tenant: Tenant, alice: User, client_of: MakeClient) -> APIClient:
    return client_of(alice)


def test_dry_run_returns_nodes_and_requests_and_writes_nothing(alices: APIClient, a_spec: MakeSpec):
    spec = {**a_spec(), "normalize": [{"op": "filter", "when": "body.total > 100"}]}
    answer = post(alices, spec=spec, event={"total": 120.5})
    assert answer.status_code == 200, answer.content
    shown = answer.json()
    assert [node["node"] for node in shown["nodes"]] == ["normalize", "transform:crm"]
    assert shown["nodes"][0]["results"][0]["outcome"] == "passed"
    assert shown["event"] == shown["requests"][0]["body"] == '{"total":120.5}'
    assert not Pipe.objects.exists()
    assert not PipeRevision.objects.exists()


def test_request_that_would_be_a_dead_letter_has_its_cause(alices: APIClient, a_spec: MakeSpec):
    path = {"type": "http", "url": "https://crm.example.com/in", "template": {"path": "/${body.id}"}}
    spec = {**a_spec(), "destinations": {"crm": path}}
    causes = [post(alices, spec=spec, event=event).json()["requests"][0]["cause"] for event in ({"id": 7}, {})]
    assert causes == ["", "template"]


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
            "needs names separated by dots, such as order.total",
            id="a path",
        ),
    ],
)
def test_invalid_spec_is_422_with_its_field_and_message(
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
def test_invalid_field_outside_the_spec_is_400(alices: APIClient, a_spec: MakeSpec, more: dict[str, Any], pointer: str):
    answer = post(alices, **{"spec": a_spec(), "event": {}, **more})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_event_that_cannot_be_encoded_is_400(alices: APIClient, a_spec: MakeSpec):
    body = json.dumps({"spec": a_spec(), "event": "\ud800"})
    answer = alices.generic("POST", URL, body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "#/event")


def test_event_or_a_pipe_with_an_event_is_required(alices: APIClient, pipe: Pipe, a_spec: MakeSpec):
    for more, words in (({}, "a pipe whose newest event is used"), ({"pipe": pipe.id}, "it has had none yet")):
        (error,) = post(alices, spec=a_spec(), **more).json()["errors"]
        assert error["pointer"] == "#/event"
        assert words in error["detail"]


def test_dry_run_without_event_reads_the_pipes_newest_one_at_its_ledger_position(
    alices: APIClient, pipe: Pipe, a_spec: MakeSpec, settings: Settings
):
    settings.PENSTOCK_KAFKA = "127.0.0.1:1"
    alices.raise_request_exception = False
    place_of_pipe(pipe)
    for bucket, offset in ((29_000_000, 9), (29_000_001, 7)):
        FactRow.objects.create(
            pipe_id=pipe.id, bucket=bucket, node="ingest", fact="sent", detail="acked", audit_partition=0, count=2,
            positions=BitMap64([position_of(1, 3, 2), position_of(1, 3, offset)]).serialize(),
        )  # fmt: skip
    assert last_place(pipe) == UnitPosition(1, 3, 7)
    answer = post(alices, spec=a_spec(), pipe=pipe.id)
    assert answer.status_code == 503
    assert answer.json()["detail"] == "The pipe's newest event cannot be read: the brokers do not respond."


def place_of_pipe(pipe: Pipe) -> None:
    """Put the pipe on a cell with an ingest topic."""
    cell = Cell.objects.create(id="c1")
    Topic.objects.create(cell=cell, purpose="ingest", generation=1, name="i", topic_id="x", partitions=8)
    pipe.cell = cell
    pipe.save(update_fields=["cell"])


def test_hashes_are_those_of_the_pipes_tenant(alices: APIClient, pipe: Pipe, a_spec: MakeSpec):
    spec = {**a_spec(), "normalize": [{"op": "mask", "path": "mail", "how": "hash"}]}
    with_pipe = [post(alices, spec=spec, event={"mail": "ada@example.com"}, pipe=pipe.id).json() for _ in range(2)]
    without = post(alices, spec=spec, event={"mail": "ada@example.com"}).json()
    bodies = [shown["requests"][0]["body"] for shown in (*with_pipe, without)]
    assert bodies[0] == bodies[1] != bodies[2]
    assert "ada@example.com" not in bodies[0]


def test_pipe_of_another_tenant_is_not_found(charlie: User, client_of: MakeClient, pipe: Pipe, a_spec: MakeSpec):
    assert post(client_of(charlie), spec=a_spec(), event={}, pipe=pipe.id).status_code == 404


def test_dry_run_over_its_limits_is_422_and_names_the_limit(
    alices: APIClient, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "TRY_S", 0.02)  # the kernel checks every 4 ms; each of 30 transforms needs about 10 ms
    slow = a_spec(**{f"crm{number}": "https://crm.example.com/in" for number in range(30)})
    steps = [{"op": "filter", "when": "body.l.all(x, x >= 0)"}] * 10
    slow["transform"] = dict.fromkeys(slow["destinations"], steps)
    answer = post(alices, spec=slow, event={"l": list(range(5_000))})
    assert (answer.status_code, answer.json()["code"]) == (422, "too-expensive")
    assert answer.json()["detail"] == "This took more than 0.02 s of CPU time and was stopped."


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        pytest.param(SandboxBusy("Try again in a few seconds."), 503, "busy", id="the server is busy"),
        pytest.param(TooManyAtOnce("Wait until one is done."), 429, "too-many-at-once", id="the user has too many"),
    ],
)
def test_dry_run_without_a_free_worker_returns_retry_after(
    alices: APIClient, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch, refusal: Exception, status: int, code: str
):
    def refuse(*_: Any, **__: Any) -> None:
        raise refusal

    monkeypatch.setattr(sandbox.trials(), "run", refuse)
    alices.raise_request_exception = False
    answer = post(alices, spec=a_spec(), event={})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert int(answer["Retry-After"]) > 0


def test_spec_that_is_too_expensive_to_check_is_not_stored(
    alices: APIClient, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "CHECK_S", 0.004)
    clauses = " || ".join(f"body.b{number} > {number}" for number in range(20))
    slow = {**a_spec(), "normalize": [{"op": "filter", "when": f"body.a{n} > {n} || {clauses}"} for n in range(100)]}
    answer = alices.post("/api/v1/pipes/", {"name": "slow", "spec": slow}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (422, "spec-invalid")
    assert "too expensive to check" in answer.json()["detail"]
    assert not Pipe.objects.exists()
