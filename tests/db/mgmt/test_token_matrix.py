"""Every route and method of the API by token, built from the routes and the table of roles (test_access_matrix).

A request by token is compared with the same request by the owner's session: what the token reaches, it answers alike.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from django.db import transaction
from django.utils import timezone
from rest_framework.test import APIClient

from dataplane.schemas.types import SchemaType
from mgmt.models import Admission, ApiToken, DestinationTest, Pipe, Tenant, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import (
    create_api_key,
    create_lookup_table,
    create_pipe,
    register_version,
    revoke_token,
)
from mgmt.tokens.models import ROLE_OF_SCOPE
from mgmt.web import access
from tests.db.cast import MakeClient, MakeSpec
from tests.db.mgmt.test_access_matrix import NEEDS, ROUTES, STAFFS, UNSAFE, delivery_rows, ramp_of
from tests.db.mgmt.test_openapi_baseline import BASELINE
from tests.db.mgmt.test_token_authentication import bearer, token_of

PUBLIC = ("/api/v1/problems/", "/api/v1/schema/")
# Routes without a row of a pipe or tenant in their path, and those of the features with matrices of their own.
MORE_NEEDS = {
    ("post", "/api/v1/lookup-tables/"): access.CHANGE_LOOKUPS,
    ("delete", "/api/v1/lookup-tables/{table}/"): access.CHANGE_LOOKUPS,
    ("post", "/api/v1/lookup-tables/{table}/upload/"): access.CHANGE_LOOKUPS,
    ("post", "/api/v1/lookup-tables/{table}/access/"): access.READ,
    ("put", "/api/v1/lookup-tables/{table}/rows/k/"): access.CHANGE_LOOKUPS,
    ("delete", "/api/v1/lookup-tables/{table}/rows/k/"): access.CHANGE_LOOKUPS,
    ("post", "/api/v1/schemas/"): access.REGISTER_SCHEMA,
    ("post", "/api/v1/schemas/check/"): access.READ,
    ("patch", "/api/v1/schemas/{subject}/"): access.CHANGE_SUBJECT,
    ("patch", "/api/v1/schemas/{subject}/versions/1/"): access.CHANGE_SUBJECT,
    ("post", "/api/v1/destination-tests/"): access.SEND_TEST,
    ("get", "/api/v1/tenants/{tenant}/audit-log/"): access.READ_AUDIT,
    ("get", "/api/v1/tenants/{tenant}/single-sign-on/"): access.MANAGE_SSO,
    ("get", "/api/v1/tenants/{tenant}/sso-domains/"): access.MANAGE_SSO,
}
# By token these need more than by session: tokens make and revoke no other tokens.
BY_TOKEN = {
    ("post", "/api/v1/tenants/{tenant}/tokens/"): access.MANAGE_TOKENS,
    ("delete", "/api/v1/tenants/{tenant}/tokens/{token}/"): access.MANAGE_TOKENS,
}
# The body of these names the row, so an empty one is invalid for every role.
BODY_FIRST = ("/api/v1/pipes/", "/api/v1/lookup-tables/", "/api/v1/schemas/", "/api/v1/destination-tests/")
Call = tuple[str, str]
Expect = Callable[[Call], tuple[int, str]]


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgmt.messages.queries.records.READ_S", 0.05)


@pytest.fixture
def values(pipe: Pipe, tenant: Tenant, alice: User) -> dict[str, str]:
    """Return the ids of rows of each kind, by the name of the route's argument."""
    key, _ = create_api_key(source=pipe.sources.get())
    ids = {name: str(row.id) for name, row in delivery_rows(pipe).items()}
    ramp_of(pipe)
    Admission.objects.create(pipe=pipe, share=20, expected_per_s=1_000)
    draft = SchemaDraft(SchemaType.AVRO, json.dumps({"type": "record", "name": "o", "fields": []}), ())
    version, _ = register_version(tenant=tenant, subject="orders", draft=draft, author=alice)
    test = DestinationTest.objects.create(
        tenant=tenant, pipe=pipe, destination="crm", config={}, url="", headers=[], body="", by=alice,
        created_at=timezone.now(),
    )  # fmt: skip
    return ids | {
        "pipe": pipe.id,
        "tenant": tenant.id,
        "key": key.id,
        "table": create_lookup_table(tenant=tenant, name="shops").id,
        "subject": version.subject_id,
        "test": test.id,
        "username": "bob",
        "domain": "acme.example",
        "source": "shop",
        "name": "crm",
        "number": "2",
        "bucket": "29384711",
        "position": "1-0-0",
    }


@pytest.fixture
def calls(values: dict[str, str]) -> dict[Call, str]:
    """Return the required role of each method and path of the API, but for those of staff and those without sign-in."""
    needs = {(method, path.format(**values)): need for (method, path), need in (NEEDS | MORE_NEEDS).items()}
    found: dict[Call, str] = {}
    for route in ROUTES:
        if route.template.startswith("/api/") and not route.template.startswith((*STAFFS, *PUBLIC)):
            at = values | ({"key": "k"} if "/rows/" in route.template else {})
            at |= {"number": "1"} if "/versions/" in route.template else {}
            path = re.sub(r"<\w+:(\w+)>", lambda match, at=at: at[match[1]], route.template)  # type: ignore[misc]
            for method in route.methods():
                found[method, path] = (
                    needs[method, path] if method in UNSAFE else needs.get((method, path), access.READ)
                )
    return found


def test_matrix_has_every_operation_of_the_document(calls: dict[Call, str]):
    paths = yaml.safe_load(BASELINE.read_text())["paths"]
    documented = [
        (method, path) for path, operations in paths.items() for method in operations if method in ("get", *UNSAFE)
    ]
    others = ("/api/v1/staff/", *PUBLIC)
    assert len([path for _, path in documented if path.startswith("/api/") and not path.startswith(others)]) == len(
        calls
    )


def answers(client: APIClient, calls: dict[Call, str]) -> dict[Call, tuple[int, str]]:
    """Return status and problem code of each call; each is undone."""
    found = {}
    for method, path in calls:
        with _undone():
            answer = getattr(client, method)(path, {} if method in UNSAFE else None)
            is_json = answer.headers.get("Content-Type", "").startswith("application/problem")
            found[method, path] = answer.status_code, answer.json()["code"] if is_json else ""
    return found


@contextmanager
def _undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def mismatches(client: APIClient, calls: dict[Call, str], expect: Expect) -> dict[Call, Any]:
    got = answers(client, calls)
    return {call: (got[call], expect(call)) for call in calls if got[call] != expect(call)}


def test_no_credential_and_ended_tokens_are_401_everywhere(alice: User, tenant: Tenant, calls: dict[Call, str]):
    expired, expired_text = token_of(alice, tenant, scope="admin")
    ApiToken.objects.filter(id=expired.id).update(expires_at=timezone.now())
    revoked, revoked_text = token_of(alice, tenant, scope="admin")
    revoke_token(token=revoked, by=alice, now=timezone.now())
    assert mismatches(APIClient(), calls, lambda _: (401, "not-authenticated")) == {}
    assert mismatches(bearer(expired_text), calls, lambda _: (401, "token-expired")) == {}
    assert mismatches(bearer(revoked_text), calls, lambda _: (401, "token-revoked")) == {}


@pytest.mark.parametrize("scope", ApiToken.Scope)
def test_scope_allows_exactly_what_its_role_does(
    scope: ApiToken.Scope,
    alice: User,
    values: dict[str, str],
    tenant: Tenant,
    calls: dict[Call, str],
    client_of: MakeClient,
):
    by_session = answers(client_of(alice), calls)
    by_token = {(method, path.format(**values)): need for (method, path), need in BY_TOKEN.items()}

    def expect(call: Call) -> tuple[int, str]:
        if access.may(ROLE_OF_SCOPE[scope], by_token.get(call, calls[call])):
            return by_session[call]
        return (400, "invalid") if call[1] in BODY_FIRST else (403, "scope-too-low")

    client = bearer(token_of(alice, tenant, scope=scope)[1])
    assert mismatches(client, calls, expect) == {}
    assert {status for status, _ in by_session.values()} >= {200, 201, 204}


def test_token_of_another_tenant_finds_no_row(charlie: User, calls: dict[Call, str]):
    client = bearer(token_of(charlie, charlie.tenants.get(), scope="admin")[1])
    of_rows = {call: need for call, need in calls.items() if re.search(r"/[a-z]+_[0-9a-z]{20}/", call[1])}
    assert mismatches(client, of_rows, lambda _: (404, "not-found")) == {}


def test_token_of_one_pipe_reaches_that_pipe_only(
    alice: User, pipe: Pipe, tenant: Tenant, calls: dict[Call, str], client_of: MakeClient, a_spec: MakeSpec
):
    other = create_pipe(tenant=tenant, name="other", spec=a_spec(), author=alice)
    by_session = answers(client_of(alice), calls)
    of_a_pipe = {call: need for call, need in calls.items() if "/pipes/pipe_" in call[1]}
    of_the_tenant = {call: need for call, need in calls.items() if f"/tenants/{tenant.id}/" in call[1]}
    of_other_rows = {call: need for call, need in calls.items() if re.search(r"/(tab|sub)[a-z]*_", call[1])}
    own = bearer(token_of(alice, tenant, scope="admin", pipe=pipe)[1])
    foreign = bearer(token_of(alice, tenant, scope="admin", pipe=other)[1])
    assert mismatches(own, of_a_pipe, lambda call: by_session[call]) == {}
    assert mismatches(foreign, of_a_pipe, lambda _: (404, "not-found")) == {}
    for client in (own, foreign):
        assert mismatches(client, of_the_tenant, lambda _: (403, "token-of-one-pipe")) == {}
        assert mismatches(client, of_other_rows, lambda _: (404, "not-found")) == {}
