"""The generated Python client, used as a customer would: against the API and ingest, over HTTP."""

import csv
import io
import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Pipe, User
from mgmt.services import create_tenant, create_token
from penstock_client.api.operations import (
    create_key,
    create_lookup_table,
    create_pipe,
    get_pipe,
    list_attempts,
    list_lookup_rows,
    send_events,
    send_events_as_cloud_event,
    send_events_as_cloud_events,
    send_events_as_lines,
    upload_lookup_rows_as_csv,
    upload_lookup_rows_as_lines,
)
from penstock_client.client import AuthenticatedClient
from penstock_client.models.cloud_event_in import CloudEventIn
from penstock_client.models.event_ack_out import EventAckOut
from penstock_client.models.event_batch_out import EventBatchOut
from penstock_client.models.event_problem_out import EventProblemOut
from penstock_client.models.key_in import KeyIn
from penstock_client.models.lookup_table_in import LookupTableIn
from penstock_client.models.pipe_in import PipeIn
from penstock_client.models.pipe_out import PipeOut
from penstock_client.models.problem_out import ProblemOut
from penstock_client.types import File, Response
from tests.db.console.truth import Truth
from tests.support.cluster import key_of
from tests.support.live_ingest import live_ingest

pytestmark = pytest.mark.django_db(transaction=True)
SPEC = {
    "sources": {"shop": {"type": "http"}},
    "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}},
}


@pytest.fixture
def client(live_server: LiveServer, settings: Settings) -> Iterator[AuthenticatedClient]:
    """Client with a token of Alice, who owns a tenant."""
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    alice = User.objects.create_user("alice")
    tenant = create_tenant(name="Alice's", owner=alice)
    _, token = create_token(
        tenant=tenant, user=alice, by=alice, name="client", scope="publish", days=1, now=datetime.now(UTC)
    )
    with AuthenticatedClient(live_server.url, token) as made:
        yield made


def created(client: AuthenticatedClient, name: str = "orders", key: str = "") -> Response[PipeOut]:
    body = PipeIn.from_dict({"name": name, "spec": SPEC})
    return create_pipe.sync_detailed(client=client, body=body, idempotency_key=key or str(uuid.uuid4()))


def a_pipe(client: AuthenticatedClient) -> PipeOut:
    pipe = created(client).parsed
    assert pipe is not None
    return pipe


def test_repeated_post_with_one_idempotency_key_creates_one_pipe(client: AuthenticatedClient):
    first, again = (created(client, key="once") for _ in range(2))
    assert first.parsed is not None
    assert again.parsed == first.parsed
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert Pipe.objects.count() == 1
    assert get_pipe.sync(first.parsed.id, client=client) == get_pipe.sync(first.parsed.id, client=client)


def test_problem_is_a_model_with_its_code_and_fields(client: AuthenticatedClient):
    refused = created(client, name="")
    problem = ProblemOut.from_dict(json.loads(refused.content))
    assert refused.parsed is None
    assert (problem.status, problem.code) == (400, "invalid")
    assert [one.pointer for one in problem.errors] == ["#/name"]
    missing = get_pipe.sync_detailed("pipe_00000000000000000000", client=client)
    assert ProblemOut.from_dict(json.loads(missing.content)).code == "not-found"


def test_attempts_are_read_page_by_page(client: AuthenticatedClient):
    pipe = a_pipe(client)
    truth = Truth(Pipe.objects.get(id=pipe.id))
    for offset in range(5):
        truth.attempt(bucket_at(datetime.now(UTC)) - offset, offset, "parked", status=503, reason="server-error")

    def pages() -> Iterator[Any]:
        cursor: dict[str, Any] = {}
        while True:
            page = list_attempts.sync(pipe.id, client=client, limit=2, status=503, **cursor)
            assert page is not None
            yield page.results
            if page.next_ is None:
                return
            cursor = {"cursor": parse_qs(urlsplit(page.next_).query)["cursor"][0]}

    found = list(pages())
    assert [len(one) for one in found] == [2, 2, 1]
    assert [one.position for page in found for one in page] == [f"1-0-{offset}" for offset in range(5)]


def test_rows_are_imported_as_csv_and_json_lines_and_read_back(client: AuthenticatedClient):
    table = create_lookup_table.sync(client=client, body=LookupTableIn(name="shops"))
    assert table is not None
    rows = [{"id": "s-1", "city": "Delft"}, {"id": "s-2", "city": "Gouda"}]
    text = io.StringIO()
    writer = csv.DictWriter(text, ["id", "city"])
    writer.writeheader()
    writer.writerows(rows)
    uploaded = upload_lookup_rows_as_csv.sync(
        table.id, client=client, body=File(io.BytesIO(text.getvalue().encode())), key="id", mode="replace"
    )
    assert uploaded is not None
    assert uploaded.rows == 2
    line = File(io.BytesIO(b'{"id": "s-3", "city": "Breda"}\n'))
    assert upload_lookup_rows_as_lines.sync(table.id, client=client, body=line, key="id", mode="merge") is not None
    page = list_lookup_rows.sync(table.id, client=client)
    assert page is not None
    assert [one.row for one in page.rows] == [*rows, {"id": "s-3", "city": "Breda"}]
    wrong = upload_lookup_rows_as_csv.sync_detailed(table.id, client=client, body=File(io.BytesIO(b"x\n1\n")), key="id")
    assert ProblemOut.from_dict(json.loads(wrong.content)).status == wrong.status_code == 422


def test_events_are_sent_in_each_framing(client: AuthenticatedClient, tmp_path: Path):
    pipe = a_pipe(client)
    made = create_key.sync(pipe.id, client=client, body=KeyIn(source="shop"), idempotency_key="key")
    assert made is not None
    with ExitStack() as stack:
        ingest = stack.enter_context(live_ingest(tmp_path))
        ingest.accept(pipe.id, pipe.tenant, made.key)
        sender = stack.enter_context(AuthenticatedClient(ingest.url, made.key))
        one = send_events.sync(client=sender, body={"total": 12.5})
        assert isinstance(one, EventAckOut)
        assert one.status == 202
        assert one.id
        event = CloudEventIn("1.0", "e-1", "/shop", "order", data={"total": 1})
        lines = File(io.BytesIO(b'{"n": 1}\n{"n": 2}\n'))
        batches = {
            "array": send_events.sync(client=sender, body=[{"n": 1}, {"n": 2}]),
            "lines": send_events_as_lines.sync(client=sender, body=lines),
            "cloud events": send_events_as_cloud_events.sync(client=sender, body=[event, event]),
        }
        for framing, batch in batches.items():
            assert isinstance(batch, EventBatchOut), framing
            assert (batch.accepted, batch.rejected) == (2, 0), framing
        assert isinstance(send_events_as_cloud_event.sync(client=sender, body=event), EventAckOut)
        stranger = stack.enter_context(AuthenticatedClient(ingest.url, key_of("stranger")))
        refused = send_events.sync_detailed(client=stranger, body={})
        problem = EventProblemOut.from_dict(json.loads(refused.content))
        assert (refused.status_code, problem.code) == (401, "key-invalid")
