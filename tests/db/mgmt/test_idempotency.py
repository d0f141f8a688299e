"""Idempotency-Key: a retry gets the first response and changes nothing; a failed request leaves its key unused."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any, cast

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from controlplane.observer.trim import trim
from mgmt.models import ApiKey, IdempotentResponse, Pipe, Tenant, User
from mgmt.services import create_token
from mgmt.tenancy.services.rotation import rotate_secrets
from mgmt.web.api_view import View
from mgmt.web.idempotency import key_of
from mgmt.web.problems import ProblemError
from tests.db.cast import MakeClient, MakeSpec

PIPES = "/api/v1/pipes/"


@pytest.fixture
def api(alice: User, tenant: Tenant, client_of: MakeClient) -> APIClient:
    client: APIClient = client_of(alice)
    client.raise_request_exception = False
    return client


def keyed(client: APIClient, path: str, body: Any = None, key: str = "k1") -> Any:
    return client.post(path, body, headers={"Idempotency-Key": key})


def test_retry_gets_the_first_response_and_creates_nothing(api: APIClient, a_spec: MakeSpec):
    body = {"name": "orders", "spec": a_spec()}
    first, second = keyed(api, PIPES, body), keyed(api, PIPES, body)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.content == first.content
    assert (second["Location"], second["Content-Type"]) == (first["Location"], first["Content-Type"])
    assert (first.get("Idempotent-Replayed"), second["Idempotent-Replayed"]) == (None, "true")
    assert Pipe.objects.count() == 1


def test_request_without_a_key_is_executed_each_time(api: APIClient, pipe: Pipe):
    for _ in range(2):
        assert api.post(f"{PIPES}{pipe.id}/keys/", {"source": "shop"}).status_code == 201
    assert (ApiKey.objects.count(), IdempotentResponse.objects.count()) == (2, 0)


@pytest.mark.parametrize("tail", ["keys/", "pause/"])
def test_key_of_a_different_request_is_refused(api: APIClient, pipe: Pipe, tail: str):
    keyed(api, f"{PIPES}{pipe.id}/keys/", {"source": "shop", "label": "a"})
    answer = keyed(api, f"{PIPES}{pipe.id}/{tail}", {"source": "shop", "label": "a" if tail == "pause/" else "b"})
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency-key-reused")
    assert ApiKey.objects.count() == 1
    pipe.refresh_from_db()
    assert pipe.state == Pipe.State.ACTIVE


def test_refused_request_leaves_its_key_unused(api: APIClient, a_spec: MakeSpec):
    assert keyed(api, PIPES, {"name": "", "spec": a_spec()}).status_code == 400
    assert keyed(api, PIPES, {"name": "orders", "spec": a_spec()}).status_code == 201


def test_crash_before_the_end_stores_neither_change_nor_response(
    api: APIClient, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
):
    body = {"name": "orders", "spec": a_spec()}
    with monkeypatch.context() as broken:
        broken.setattr("mgmt.pipes.api.pipes.answer_of", lambda *_: 1 / 0)
        assert keyed(api, PIPES, body).status_code == 500
    assert (Pipe.objects.count(), IdempotentResponse.objects.count()) == (0, 0)
    assert keyed(api, PIPES, body).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_concurrent_duplicate_is_refused_while_the_first_request_runs(
    alice: User, tenant: Tenant, pipe: Pipe, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
):
    is_running, may_end = Event(), Event()
    path, body = f"{PIPES}{pipe.id}/keys/", {"source": "shop"}

    def wait_inside(view: View) -> User:
        if view.request.method == "POST":
            is_running.set()
            assert may_end.wait(20)
        return cast("User", view.request.user)

    def ask(client: APIClient) -> Any:
        try:
            return keyed(client, path, body)
        finally:
            connection.close()

    first_client, second_client = client_of(alice), client_of(alice)
    monkeypatch.setattr(View, "user", property(wait_inside))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, first_client)
        assert is_running.wait(20)
        second = pool.submit(ask, second_client).result(20)
        may_end.set()
        assert first.result(20).status_code == 201
    assert (second.status_code, second.json()["code"]) == (409, "idempotency-key-in-use")
    assert int(second["Retry-After"]) > 0
    third = keyed(second_client, path, body)
    assert (third.status_code, third.json()) == (201, first.result().json())
    assert ApiKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_eight_connections_with_one_key_create_one_row(alice: User, tenant: Tenant, pipe: Pipe, client_of: MakeClient):
    path = f"{PIPES}{pipe.id}/keys/"

    def ask(client: APIClient) -> int:
        try:
            status: int = keyed(client, path, {"source": "shop"}).status_code
            return status
        finally:
            connection.close()

    clients = [client_of(alice) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(ask, clients))
    assert statuses <= {201, 409}
    assert (ApiKey.objects.count(), IdempotentResponse.objects.count()) == (1, 1)


def test_key_of_another_user_or_another_token_is_another_key(
    api: APIClient, alice: User, bob: User, pipe: Pipe, client_of: MakeClient
):
    path, body = f"{PIPES}{pipe.id}/keys/", {"source": "shop"}
    about: dict[str, Any] = {"tenant": pipe.tenant, "name": "ci", "scope": "publish", "days": 1, "now": timezone.now()}
    _, text = create_token(user=alice, by=alice, **about)
    by_token = APIClient(HTTP_AUTHORIZATION=f"Bearer {text}")
    answers = [keyed(client, path, body) for client in (api, client_of(bob), by_token)]
    assert [one.status_code for one in answers] == [201, 201, 201]
    assert len({one.json()["key"] for one in answers}) == 3


def test_stored_response_is_encrypted_and_bound_to_its_row(api: APIClient, pipe: Pipe):
    secret = keyed(api, f"{PIPES}{pipe.id}/keys/", {"source": "shop"}).json()["key"]
    row = IdempotentResponse.objects.get()
    stored = f"{row.__dict__}"
    assert secret not in stored
    assert pipe.id not in row.body
    IdempotentResponse.objects.update(key="k2")
    assert keyed(api, f"{PIPES}{pipe.id}/keys/", {"source": "shop"}, key="k2").status_code == 500


def test_response_is_replayed_after_the_encryption_keys_have_been_rotated(
    api: APIClient, pipe: Pipe, settings: Settings
):
    path, body = f"{PIPES}{pipe.id}/keys/", {"source": "shop"}
    first = keyed(api, path, body).json()
    old = settings.PENSTOCK_FERNET_KEYS
    settings.PENSTOCK_FERNET_KEYS = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", *old]
    rotate_secrets()
    settings.PENSTOCK_FERNET_KEYS = settings.PENSTOCK_FERNET_KEYS[:1]
    assert keyed(api, path, body).json() == first


def test_response_is_not_replayed_after_the_users_roles_have_changed(api: APIClient, alice: User, pipe: Pipe):
    path, body = f"{PIPES}{pipe.id}/keys/", {"source": "shop"}
    keyed(api, path, body)
    alice.memberships.all().delete()
    answer = keyed(api, path, body)
    assert (answer.status_code, answer.json()["code"]) == (409, "roles-changed")
    assert "key" not in answer.json()


def test_key_can_be_used_again_after_a_day(api: APIClient, pipe: Pipe):
    path, body = f"{PIPES}{pipe.id}/keys/", {"source": "shop"}
    first = keyed(api, path, body).json()
    IdempotentResponse.objects.update(created_at=timezone.now() - timedelta(hours=24))
    assert keyed(api, path, body).json()["id"] != first["id"]
    assert IdempotentResponse.objects.count() == 1


def test_observer_deletes_responses_after_a_day(api: APIClient, pipe: Pipe):
    keyed(api, f"{PIPES}{pipe.id}/keys/", {"source": "shop"})
    now = timezone.now()
    for later, left in ((timedelta(hours=23), 1), (timedelta(hours=25), 0)):
        trim(now + later, attempts_keep_h=24, seals_keep_d=30, ends_keep=timedelta(days=30))
        assert IdempotentResponse.objects.count() == left


@pytest.mark.parametrize(("header", "key"), [("k-1", "k-1"), ('"k 1"', "k 1"), (r'"a\"b"', 'a"b'), ("é" * 3, "")])
def test_key_is_a_quoted_string_or_bare_text(header: str, key: str):
    if key:
        assert key_of(header) == key
    else:
        with pytest.raises(ProblemError):
            key_of(header)


@pytest.mark.parametrize("header", ["", '"', '"open', "a b", "x" * 256, '""'])
def test_invalid_key_is_refused(api: APIClient, pipe: Pipe, header: str):
    answer = keyed(api, f"{PIPES}{pipe.id}/keys/", {"source": "shop"}, key=header)
    assert (answer.status_code, answer.json()["code"]) == (400, "idempotency-key-invalid")
    assert not ApiKey.objects.exists()


def test_key_does_not_grant_access(api: APIClient, charlie: User, pipe: Pipe, client_of: MakeClient):
    path, body = f"{PIPES}{pipe.id}/keys/", {"source": "shop"}
    keyed(api, path, body)
    assert keyed(client_of(charlie), path, body).status_code == 404
