"""Every API error is application/problem+json with the same fields and a stable code."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.utils.html import escape
from rest_framework.test import APIClient

from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.problems import problem_body as ingest_body
from dataplane.refusals import TITLES
from mgmt.models import Pipe, Tenant, User
from mgmt.web import throttling
from mgmt.web.error_help import help_on
from mgmt.web.handlers import spec_pointer
from mgmt.web.problems import PROBLEMS, problem_body
from tests.db.cast import MakeClient, MakeSpec

FIELDS = {"type", "title", "status", "detail", "instance", "code", "request_id", "errors"}


@pytest.fixture
def api(alice: User, tenant: Tenant, client_of: MakeClient) -> APIClient:
    client: APIClient = client_of(alice)
    client.raise_request_exception = False
    return client


def _raw(body: bytes, kind: str = "application/json") -> Callable[[APIClient], Any]:
    return lambda api: api.generic("POST", "/api/v1/pipes/", body, content_type=kind)  # type: ignore[arg-type]


def _pipe(**changes: Any) -> Callable[[APIClient], Any]:
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/"}}}
    return lambda api: api.post("/api/v1/pipes/", {"name": "orders", "spec": spec} | changes)


@pytest.mark.parametrize(
    ("ask", "status", "code"),
    [
        pytest.param(_raw(b"{"), 400, "json-invalid", id="broken JSON"),
        pytest.param(_raw(b'{"a": 1, "a": 2}'), 400, "json-invalid", id="a key twice"),
        pytest.param(_raw(b'{"a": NaN}'), 400, "json-invalid", id="NaN"),
        pytest.param(_raw(b"\xff"), 400, "json-invalid", id="not UTF-8"),
        pytest.param(_raw(b"[" * 100_000), 400, "json-invalid", id="deep"),
        pytest.param(_raw(b'{"a": ' + b"1" * 5_000 + b"}"), 400, "json-invalid", id="a number of 5000 digits"),
        pytest.param(_raw(b"[]"), 400, "invalid", id="not an object"),
        pytest.param(_raw(b" " * 1_100_000), 413, "body-too-large", id="too large"),
        pytest.param(_raw(b"a=1", "application/x-www-form-urlencoded"), 415, "media-type", id="a form"),
        pytest.param(_raw(b"{}", ""), 415, "media-type", id="no type"),
        pytest.param(_pipe(name=""), 400, "invalid", id="an empty name"),
        pytest.param(_pipe(name="a\x00b"), 400, "invalid", id="NUL in a name"),
        pytest.param(_pipe(tenant_id="x", is_staff=True), 400, "invalid", id="unknown fields"),
        pytest.param(_pipe(spec={"sources": {}}), 422, "spec-invalid", id="a bad spec"),
        pytest.param(_pipe(tenant="ten_00000000000000000000"), 404, "not-found", id="a missing tenant"),
        pytest.param(lambda api: api.get("/api/v1/nowhere/"), 404, "not-found", id="no route"),
        pytest.param(lambda api: api.get("/api/v1/pipes/%00/"), 404, "not-found", id="an id of the wrong shape"),
        pytest.param(
            lambda api: api.get("/api/v1/pipes/pipe_00000000000000000000/"), 404, "not-found", id="a missing row"
        ),
        pytest.param(lambda api: api.get("/api/v1/problems/nonsense/"), 404, "not-found", id="an unknown code"),
        pytest.param(lambda api: api.delete("/api/v1/pipes/"), 405, "method-not-allowed", id="a method"),
        pytest.param(lambda api: api.get("/api/v1/me/", HTTP_ACCEPT="text/csv"), 406, "not-acceptable", id="Accept"),
        pytest.param(lambda api: api.get("/api/v1/pipes/?limit=1000000000"), 400, "parameter-invalid", id="a limit"),
        pytest.param(lambda api: api.get("/api/v1/pipes/?limit=0"), 400, "parameter-invalid", id="limit 0"),
        pytest.param(lambda api: api.get("/api/v1/pipes/?cursor=forged"), 400, "parameter-invalid", id="a cursor"),
        pytest.param(
            lambda api: api.get("/api/v1/pipes/?cursor=cD0lMDA="), 400, "parameter-invalid", id="NUL in a cursor"
        ),
        pytest.param(lambda api: api.get("/api/v1/me/", HTTP_HOST="evil.example"), 400, "bad-request", id="a host"),
    ],
)
def test_invalid_input_gets_a_problem_response(api: APIClient, ask: Callable[[APIClient], Any], status: int, code: str):
    answer = ask(api)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    _check_shape(answer)
    assert not Pipe.objects.exists()


def test_invalid_spec_names_the_path(api: APIClient):
    spec = {
        "sources": {"shop": {}},
        "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/"}},
        "normalize": [{"op": "nonsense"}],
    }
    answer = api.post("/api/v1/pipes/", {"name": "orders", "spec": spec}).json()
    assert answer["errors"][0]["pointer"] == "#/spec/normalize/0/op"
    assert "$.normalize[0].op" in answer["detail"]


def test_unknown_field_of_a_spec_is_refused(api: APIClient, a_spec: MakeSpec):
    answer = api.post("/api/v1/pipes/", {"name": "orders", "spec": a_spec() | {"sauces": {}}})
    assert (answer.status_code, answer.json()["code"]) == (422, "spec-invalid")


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("$", "#/spec"),
        ("$.normalize[0].op", "#/spec/normalize/0/op"),
        ("$.destinations[...].url", "#/spec/destinations"),
        ("key` in `$.sources", "#/spec/sources"),
    ],
)
def test_paths_of_a_spec_become_json_pointers(path: str, pointer: str):
    assert spec_pointer(path) == pointer


def test_unknown_fields_are_named_together_with_invalid_ones(api: APIClient):
    answer = api.post("/api/v1/pipes/", {"nmae": "orders", "spec": []}).json()
    found = {(e["pointer"], e["code"]) for e in answer["errors"]}
    assert found == {("#/nmae", "unknown-field"), ("#/name", "required"), ("#/spec", "not-a-dict")}


def test_post_without_the_csrf_token_is_refused(alice: User, tenant: Tenant, a_spec: MakeSpec):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(alice)
    answer = client.post("/api/v1/pipes/", {"name": "orders", "spec": a_spec()})
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf-failed")
    _check_shape(answer)
    assert not Pipe.objects.exists()


@pytest.mark.django_db
def test_missing_and_wrong_credentials_get_a_challenge(client: Client):
    nobody = client.get("/api/v1/me/")
    assert (nobody.status_code, nobody.json()["code"]) == (401, "not-authenticated")
    wrong = client.get("/api/v1/me/", headers={"authorization": "Basic eDp5"})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "authentication-failed")
    for answer in (nobody, wrong):
        assert answer["WWW-Authenticate"].startswith("Bearer")
        _check_shape(answer)


def test_insufficient_role_is_refused_naming_the_needed_role(pipe: Pipe, bob: User, client_of: MakeClient):
    answer = client_of(bob).post(f"/api/v1/pipes/{pipe.id}/close/")
    assert (answer.status_code, answer.json()["code"]) == (403, "role-too-low")
    assert "owner" in answer.json()["detail"]
    _check_shape(answer)


def test_throttled_request_gets_retry_after(api: APIClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(throttling, "PER_USER", throttling.PER_USER._replace(most=2))
    answer = [api.get("/api/v1/me/") for _ in range(3)][-1]
    assert (answer.status_code, answer.json()["code"]) == (429, "throttled")
    assert int(answer["Retry-After"]) > 0
    _check_shape(answer)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(OperationalError("host=10.0.0.1 is down"), 503, "unavailable"), (RuntimeError("secret"), 500, "internal")],
)
def test_server_errors_reveal_no_internals(
    api: APIClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
):
    def fail(*_args: Any) -> None:
        raise error

    monkeypatch.setattr("mgmt.web.access.pipes_of", fail)
    answer = api.get("/api/v1/pipes/")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert str(error) not in answer.content.decode()
    _check_shape(answer)
    assert (code != "unavailable") or answer["Retry-After"]


def test_page_without_its_database_reports_unaffected_pipes_and_retry_after(
    alice: User, client: Client, monkeypatch: pytest.MonkeyPatch
):
    def away(*_args: Any) -> None:
        raise OperationalError("host=10.0.0.1 is down")

    client.force_login(alice)
    client.raise_request_exception = False
    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", away)
    page = client.get("/")
    assert (page.status_code, page["Content-Type"]) == (503, "text/html; charset=utf-8")
    assert int(page["Retry-After"]) > 0
    assert "Your pipes are not affected" in page.content.decode()
    assert "10.0.0.1" not in page.content.decode()


def test_error_does_not_repeat_the_input(api: APIClient):
    answer = _raw(b'{"canary-4711": canary-4712}')(api)
    assert "canary" not in answer.content.decode()


def test_every_problem_code_has_help_for_programs(client: Client):
    for code, problem in PROBLEMS.items():
        page = client.get(f"/api/v1/problems/{code}/").json()
        assert page == {"code": code, "status": problem.status, "title": problem.title, "meaning": problem.meaning}


def test_type_of_every_error_of_api_and_ingest_is_a_page_that_anyone_can_open(client: Client, rf: RequestFactory):
    types = {code: problem_body(rf.get("/"), code)["type"] for code in PROBLEMS}
    for code in TITLES:
        refusal = EventRejectedError(400, code, "needs something")
        types[code] = json.loads(ingest_body(refusal, "1-1", settings.PENSTOCK_WEB_URL))["type"]
    listed = client.get("/help/errors/").content.decode()
    for code, url in types.items():
        path = url.removeprefix(settings.PENSTOCK_WEB_URL)
        page = client.get(path)
        assert (page.status_code, page["Content-Type"]) == (200, "text/html; charset=utf-8"), url
        for title in {found.title for found in help_on(code)}:
            assert escape(title) in page.content.decode()
        assert f'href="{path}"' in listed
    assert client.get("/help/errors/nonsense/").status_code == 404


def test_code_of_both_sides_is_explained_for_each(client: Client):
    page = client.get("/help/errors/quota-exceeded/").content.decode()
    assert "returned by the API, status 409" in page
    assert "returned by ingest" in page
    assert "Send fewer events or bytes" in page
    assert "`" not in page, "code is marked up"


def _check_shape(answer: Any) -> None:
    body = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert set(body) == FIELDS
    assert body["status"] == answer.status_code
    assert body["type"] == f"{settings.PENSTOCK_WEB_URL}/help/errors/{body['code']}/"
    assert body["request_id"] == answer["X-Request-Id"]
    assert all(body[field] for field in FIELDS - {"errors"})
