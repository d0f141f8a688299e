"""Requests that are made from the OpenAPI document: each answer is one that the document describes, and none is a 500.

A thousand requests by default; PENSTOCK_SCHEMA_CASES sets the number of the long campaign. An operation with few
possible requests makes fewer than its part; the number really made is printed at the end of the run.
"""

import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
import yaml
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mgmt.messages.queries.readers import BrokersUnavailableError
from mgmt.models import Admission, Pipe, Tenant, User
from mgmt.services import create_api_key
from tests.db.cast import MakeClient
from tests.db.mgmt.test_access_matrix import delivery_rows, ramp_of

DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "openapi.yaml"
CASES: Final = 1_000
LONG_CASES: Final = int(os.environ.get("PENSTOCK_SCHEMA_CASES", "20000"))
CHECKS: Final = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
MOSTLY: Final = st.sampled_from([True] * 7 + [False])
# Kafka and hosts of look-up tables are away here: 503 is then the documented answer.
FAILURES: Final = {500, 501, 502, 504}
SPEC: Final = {
    "sources": {"shop": {"type": "http"}},
    "normalize": [{"op": "filter", "when": "body.total > 0"}],
    "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}},
}
AVRO: Final = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "double"}]}
SEEDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "table": ("lookup-tables/", {"name": "prices"}),
    "version": ("schemas/", {"subject": "orders-value", "type": "AVRO", "schema": AVRO}),
    "test": ("destination-tests/", {"spec": SPEC, "destination": "crm", "event": {"total": 12}}),
    "pause": ("staff/pauses/", {"controller": "scale", "reason": "maintenance"}),
}


def _operations() -> Iterator[Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(DOCUMENT.read_text(), Loader=loader)  # noqa: S506 both loaders are safe
    schema = schemathesis.openapi.from_dict(document)
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.path.startswith("/api/v1/") and operation.path != "/api/v1/schema/":
            yield pytest.param(operation, id=operation.definition.raw["operationId"])


OPERATIONS: Final = list(_operations())


@contextmanager
def one_connection() -> Iterator[None]:
    """Let WSGI requests use the connection of the test, as Django's test client does."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


@pytest.fixture
def ids(
    tenant: Tenant,
    pipe: Pipe,
    alice: User,
    client_of: MakeClient,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, str]:
    """Ids of seeded rows by the names of path parameters."""
    monkeypatch.setattr("mgmt.web.throttling.hit", lambda *_: 0)  # thousands of requests of one user

    def away(*_: object) -> None:
        raise BrokersUnavailableError

    monkeypatch.setattr("mgmt.messages.queries.readers.RecordReader", away)
    User.objects.filter(id=alice.id).update(is_staff=True)
    rows = delivery_rows(pipe)
    ramp_of(pipe)
    Admission.objects.create(pipe=pipe, share=20, expected_per_s=1_000)
    key, _ = create_api_key(source=pipe.sources.get())
    api = client_of(alice)
    made = {name: _seed(api, path, body) for name, (path, body) in SEEDS.items()}
    assert api.put(f"/api/v1/lookup-tables/{made['table']['id']}/rows/DE/", {"vat": 19}).status_code == 201
    return {
        **{name: str(row.id) for name, row in rows.items()},
        "pipe": pipe.id,
        "tenant": tenant.id,
        "key": key.id,
        "table": made["table"]["id"],
        "subject": api.get("/api/v1/schemas/").json()["results"][0]["id"],
        "test": made["test"]["id"],
        "pause": str(made["pause"]["id"]),
        "source": "shop",
        "name": "crm",
        "bucket": "29497680",
        "position": "1-0-0",
        "code": "not-found",
        "number": "1",
        "cell": "c9",
        "controller": "scale",
    }


def _seed(api: APIClient, path: str, body: dict[str, Any]) -> Any:
    response = api.post(f"/api/v1/{path}", body)
    assert response.status_code < 300, response.json()
    return response.json()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_answer_is_described_in_the_document(operation: Any, ids: dict[str, str]):
    assert check(operation, ids, CASES // len(OPERATIONS)) > 0


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_answer_of_a_long_campaign_is_described_in_the_document(
    operation: Any,
    ids: dict[str, str],
    record_property: Callable[[str, object], None],
):
    record_property("requests", check(operation, ids, -(-LONG_CASES // len(OPERATIONS))))


def check(operation: Any, ids: dict[str, str], cases: int) -> int:
    """Send up to this number of requests of one operation, each from the seeded state; return how many were sent."""
    sent = count()
    application = get_wsgi_application()
    authorization = "Basic " + b64encode(b"alice:alice's long password").decode()
    known = _known_in(operation.path, ids)
    fields = {"spec": SPEC, "schema": AVRO, "destination": "crm", "source": "shop", "controller": "scale"}
    fields |= {name: ids[name] for name in ("tenant", "pipe", "cell")} | {"type": "AVRO", "based_on": 2}

    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        derandomize=cases < 100,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    @given(case=_cases(operation), has_known_ids=MOSTLY, has_known_fields=MOSTLY)
    def send(case: Any, has_known_ids: bool, has_known_fields: bool) -> None:
        if has_known_ids:
            case.path_parameters = {name: known.get(name, value) for name, value in case.path_parameters.items()}
        if has_known_fields and isinstance(case.body, dict):
            case.body = {name: fields.get(name, value) for name, value in case.body.items()}
        with transaction.atomic():
            next(sent)
            response = case.call(app=application, headers={"Authorization": authorization})
            transaction.set_rollback(True)
        assert response.status_code not in FAILURES, response.text
        case.validate_response(response, checks=CHECKS)

    with one_connection():
        send()
    return next(sent)


def _known_in(path: str, ids: dict[str, str]) -> dict[str, str]:
    """Return the ids for the parameters of a path; `number` and `key` have another meaning in some."""
    if "/dead-letters/" in path:
        return ids | {"number": ids["letter"]}
    if "/ramp/" in path:
        return ids | {"number": "2"}
    return ids | {"key": "DE"} if "/rows/" in path else ids


def _cases(operation: Any) -> st.SearchStrategy[Any]:
    """Return the strategy of valid requests and, where something can be invalid, of invalid ones."""
    valid = operation.as_strategy(GenerationMode.POSITIVE)
    return st.one_of(valid, operation.as_strategy(GenerationMode.NEGATIVE))
