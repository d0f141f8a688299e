"""The access matrix, built from the routes: a new route is included automatically."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from mgmt.models import (
    Admission,
    Alert,
    ApiToken,
    Backfill,
    Cell,
    DeadLetter,
    Membership,
    Pipe,
    PipeRevision,
    Ramp,
    Redrive,
    Rejection,
    Replay,
    Shadow,
    SsoConnection,
    SsoDomain,
    Tenant,
    User,
)
from mgmt.services import (
    add_member,
    begin_ramp,
    create_api_key,
    create_catalogue_link,
    create_pipe,
    create_service_account,
    create_token,
    ignore_field,
    invite_member,
)
from mgmt.tenancy.row_scope import UNRESTRICTED
from mgmt.web import access
from tests.db.cast import MakeClient, MakeSpec
from tests.db.channels import add_active_channel

Role = Membership.Role
MISSING = "pipe_00000000000000000000"
MISSING_TENANT = "ten_00000000000000000000"
UNSAFE = ("post", "put", "patch", "delete")


@dataclass(frozen=True)
class Route:
    """One route: its template, argument names and view."""

    template: str
    arguments: tuple[str, ...]
    view: Any

    def methods(self) -> list[str]:
        """Return the methods that the API view defines; a page may have GET and POST."""
        view = getattr(self.view, "view_class", None)
        return [m for m in ("get", *UNSAFE) if hasattr(view, m)] if view else ["get", "post"]


def _routes(resolver: URLResolver, prefix: str = "/") -> Iterator[Route]:
    for entry in resolver.url_patterns:
        template = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            if entry.namespace != "admin":
                yield from _routes(entry, template)
        elif isinstance(entry, URLPattern):
            yield Route(template, tuple(entry.pattern.converters), entry.callback)


ROUTES = list(_routes(get_resolver()))
# These have their own matrices: tests/db/mgmt/test_lookup_tables.py, tests/db/console/test_lookup_table_pages.py,
# tests/db/mgmt/test_delivery_tests.py, tests/db/console/test_delivery_test_pages.py
LOOKUPS = ("/api/v1/lookup-tables/", "/tables/")
TESTS = (
    "/api/v1/destination-tests/",
    "/tests/",
)
# The schema registry: tests/db/mgmt/test_schema_registry.py, tests/db/mgmt/test_registry_wire.py and
# tests/db/console/test_registry_pages.py. Routes that name the tenant are in this matrix, too.
REGISTRY = ("/api/v1/schemas/", "/registry/", "/schemas/")
JSON = ("/api/", "/registry/")
# These pages act on the signed-in user only: tests/db/console/test_account_pages.py
ACCOUNT = ("/account/",)
STAFFS = ("/staff/", "/api/v1/staff/")  # for staff, independent of their tenants
OF_A_ROW = [route for route in ROUTES if {"pipe", "pipe_id", "tenant"} & set(route.arguments)]
# Routes that name no tenant's row. A new one must be added here on purpose.
OF_NO_ROW = {
    "/api/v1/me/",
    "/api/v1/pipes/",
    "/api/v1/pipes/dry-run/",
    "/api/v1/alerts/",
    "/api/v1/asyncapi/",
    "/api/v1/problems/<slug:code>/",
    "/api/v1/schema/",
    "/",
    "/sign-in/",
    "/sign-in/<str:token>/",
    "/sign-out/",
    "/admin/login/",
    "/admin/password_change/",
    "/theme/",
    "/tenant/",
    "/invitations/<str:token>/",
    "/members/",
    "/single-sign-on/",
    "/sso/",
    "/sso/link/",
    "/sso/<str:organisation>/",
    "/sso/<str:organisation>/callback/",
    "/sso/<row_id:organisation>/saml/metadata/",
    "/sso/<row_id:organisation>/saml/acs/",
    "/sso/<row_id:organisation>/saml/finish/",
    "/usage/",
    "/tokens/",
    "/tokens/accounts/",
    "/tokens/accounts/<str:account_id>/change/",
    "/tokens/accounts/<str:account_id>/remove/",
    "/tokens/<str:token_id>/revoke/",
    "/audit/",
    "/pipes/",
    "/pipes/new/",
    "/alerts/",
    "/alerts/channels/",
    "/alerts/confirm/<str:token>/",
    "/catalogue/<str:token>/",
    "/catalogue/<str:token>/<str:subject_id>/",
    "/portals/",
    "/portal/<str:token>/",
    "/find/",
    "/go/",
    "/receipts/<str:message_id>/",
    "/help/errors/",
    "/help/errors/<slug:code>/",
    "/help/causes/",
    "/help/causes/<slug:code>/",
}
CASES = [
    pytest.param(route, method, id=f"{method} {route.template}") for route in OF_A_ROW for method in route.methods()
]


def test_every_route_names_a_row_or_is_listed_as_naming_none():
    others = {
        route.template
        for route in ROUTES
        if not route.template.startswith((*LOOKUPS, *TESTS, *REGISTRY, *STAFFS, *ACCOUNT))
    }
    assert others - {route.template for route in OF_A_ROW} <= OF_NO_ROW


@pytest.mark.parametrize("route", [route for route in ROUTES if route.template.startswith(STAFFS)])
def test_owner_who_is_not_staff_finds_no_staff_page(route: Route, alice: User, client: Client, client_of: MakeClient):
    path = re.sub(r"<[^>]*>", "1", route.template)
    for method in route.methods():
        assert getattr(client_of(alice), method)(path).status_code == 404
        assert getattr(client, method)(path).status_code in (302, 401)


@pytest.mark.parametrize(("route", "method"), CASES)
def test_row_of_another_tenant_is_404_like_a_missing_one(
    route: Route, method: str, pipe: Pipe, charlie: User, client_of: MakeClient
):
    assert_hidden_from(client_of(charlie), route, method, pipe)


@pytest.mark.parametrize(("route", "method"), CASES)
def test_row_of_another_tenant_is_404_without_row_security(
    route: Route, method: str, pipe: Pipe, charlie: User, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
):
    """Row-level security alone gives the 404, too, and would hide a filter that is missing in `mgmt.web.access`."""
    monkeypatch.setattr("config.postgres.base.current_scope", lambda: UNRESTRICTED)
    assert_hidden_from(client_of(charlie), route, method, pipe)


def assert_hidden_from(client: Any, route: Route, method: str, pipe: Pipe) -> None:
    foreign = getattr(client, method)(path_of(route, pipe))
    missing = getattr(client, method)(path_of(route, pipe, missing=True))
    if foreign.status_code == 405:  # a page with a single method answers 405 before it queries anything
        assert missing.status_code == 405
        return
    assert (foreign.status_code, missing.status_code) == (404, 404)
    if route.template.startswith(JSON):
        assert _without_traces(foreign.json()) == _without_traces(missing.json())


@pytest.mark.parametrize(("route", "method"), CASES)
def test_every_route_of_a_row_requires_a_sign_in(route: Route, method: str, pipe: Pipe, client: Client):
    answer = getattr(client, method)(path_of(route, pipe))
    if route.template.startswith(JSON):
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"].startswith("Bearer")
    else:
        assert answer.status_code in (302, 405)
        assert answer.status_code == 405 or answer["Location"].startswith("/sign-in/")


NEEDS = {
    ("post", "/api/v1/pipes/"): access.CREATE_PIPE,
    ("post", "/api/v1/pipes/dry-run/"): access.READ,
    ("patch", "/api/v1/pipes/{pipe}/"): access.RENAME_PIPE,
    ("post", "/api/v1/pipes/{pipe}/compare/"): access.READ,
    ("post", "/api/v1/pipes/{pipe}/close/"): access.CLOSE_PIPE,
    ("post", "/api/v1/pipes/{pipe}/reopen/"): access.CLOSE_PIPE,
    ("post", "/api/v1/pipes/{pipe}/revisions/"): access.PUBLISH_REVISION,
    ("post", "/api/v1/pipes/{pipe}/spread-keys/"): access.PUBLISH_REVISION,
    ("post", "/api/v1/pipes/{pipe}/admission/hold/"): access.STEER_RAMP,
    ("post", "/api/v1/pipes/{pipe}/admission/resume/"): access.STEER_RAMP,
    ("post", "/api/v1/pipes/{pipe}/revisions/2/ramp/hold/"): access.STEER_RAMP,
    ("post", "/api/v1/pipes/{pipe}/revisions/2/ramp/resume/"): access.STEER_RAMP,
    ("post", "/api/v1/pipes/{pipe}/revisions/2/ramp/roll-back/"): access.STEER_RAMP,
    ("post", "/api/v1/pipes/{pipe}/sources/shop/schemas/"): access.REGISTER_SCHEMA,
    ("put", "/api/v1/pipes/{pipe}/sources/shop/event-types/"): access.SET_EVENT_TYPES,
    ("put", "/api/v1/pipes/{pipe}/sources/shop/webhook/"): access.SET_WEBHOOK,
    ("post", "/api/v1/pipes/{pipe}/keys/"): access.MAKE_KEY,
    ("post", "/api/v1/pipes/{pipe}/keys/{key}/revoke/"): access.REVOKE_KEY,
    ("post", "/api/v1/pipes/{pipe}/keys/{key}/rotate/"): access.MAKE_KEY,
    ("post", "/api/v1/pipes/{pipe}/destinations/crm/rotate-secret/"): access.ROTATE_SECRET,
    ("post", "/api/v1/pipes/{pipe}/pause/"): access.PAUSE,
    ("post", "/api/v1/pipes/{pipe}/resume/"): access.PAUSE,
    ("post", "/api/v1/pipes/{pipe}/destinations/crm/portal-links/"): access.SHARE_PORTAL,
    ("delete", "/api/v1/pipes/{pipe}/destinations/crm/portal-links/"): access.SHARE_PORTAL,
    ("post", "/api/v1/pipes/{pipe}/destinations/crm/pause/"): access.PAUSE,
    ("post", "/api/v1/pipes/{pipe}/destinations/crm/resume/"): access.PAUSE,
    ("put", "/api/v1/pipes/{pipe}/destinations/crm/credential/"): access.SET_CREDENTIAL,
    ("delete", "/api/v1/pipes/{pipe}/destinations/crm/credential/"): access.SET_CREDENTIAL,
    ("post", "/api/v1/pipes/{pipe}/moves/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/moves/preview/"): access.READ,
    ("post", "/api/v1/pipes/{pipe}/moves/{move}/abort/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/replays/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/replays/{replay}/pause/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/replays/{replay}/resume/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/replays/{replay}/abort/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/replays/{replay}/repeat-failed/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/backfills/{backfill}/cancel/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/backfills/{backfill}/retry/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/shadows/"): access.PUBLISH_REVISION,
    ("post", "/api/v1/pipes/{pipe}/shadows/{shadow}/stop/"): access.MOVE_MESSAGES,
    ("post", "/api/v1/pipes/{pipe}/shadows/{shadow}/promote/"): access.PUBLISH_REVISION,
    ("post", "/api/v1/pipes/{pipe}/alerts/{alert}/acknowledge/"): access.HANDLE_ALERT,
    ("post", "/api/v1/pipes/{pipe}/alerts/{alert}/snooze/"): access.HANDLE_ALERT,
    ("post", "/api/v1/pipes/{pipe}/alerts/{alert}/resolve/"): access.HANDLE_ALERT,
    ("post", "/api/v1/pipes/{pipe}/alerts/{alert}/probe/"): access.HANDLE_ALERT,
    ("post", "/api/v1/pipes/{pipe}/ignored-fields/"): access.HANDLE_ALERT,
    ("delete", "/api/v1/pipes/{pipe}/ignored-fields/{ignored}/"): access.HANDLE_ALERT,
    ("post", "/api/v1/tenants/{tenant}/tokens/"): access.MAKE_TOKEN,
    ("delete", "/api/v1/tenants/{tenant}/tokens/{token}/"): access.MAKE_TOKEN,
    ("post", "/api/v1/tenants/{tenant}/service-accounts/"): access.MANAGE_TOKENS,
    ("patch", "/api/v1/tenants/{tenant}/service-accounts/{account}/"): access.MANAGE_TOKENS,
    ("delete", "/api/v1/tenants/{tenant}/service-accounts/{account}/"): access.MANAGE_TOKENS,
    ("patch", "/api/v1/tenants/{tenant}/members/bob/"): access.MANAGE_MEMBERS,
    ("delete", "/api/v1/tenants/{tenant}/members/bob/"): access.MANAGE_MEMBERS,
    ("post", "/api/v1/tenants/{tenant}/invitations/"): access.MANAGE_MEMBERS,
    ("delete", "/api/v1/tenants/{tenant}/invitations/{invitation}/"): access.MANAGE_MEMBERS,
    ("post", "/api/v1/tenants/{tenant}/invitations/{invitation}/resend/"): access.MANAGE_MEMBERS,
    ("put", "/api/v1/tenants/{tenant}/single-sign-on/"): access.MANAGE_SSO,
    ("delete", "/api/v1/tenants/{tenant}/single-sign-on/"): access.MANAGE_SSO,
    ("post", "/api/v1/tenants/{tenant}/single-sign-on/test/"): access.MANAGE_SSO,
    ("put", "/api/v1/tenants/{tenant}/single-sign-on/requirement/"): access.MANAGE_SSO,
    ("post", "/api/v1/tenants/{tenant}/sso-domains/"): access.MANAGE_SSO,
    ("delete", "/api/v1/tenants/{tenant}/sso-domains/acme.example/"): access.MANAGE_SSO,
    ("post", "/api/v1/tenants/{tenant}/sso-domains/acme.example/verify/"): access.MANAGE_SSO,
    ("post", "/api/v1/tenants/{tenant}/alert-channels/"): access.CHANGE_CHANNELS,
    ("put", "/api/v1/tenants/{tenant}/schemas/config/"): access.CHANGE_SUBJECT,
    ("post", "/api/v1/tenants/{tenant}/schemas/links/"): access.SHARE_CATALOGUE,
    ("delete", "/api/v1/tenants/{tenant}/schemas/links/{link}/"): access.SHARE_CATALOGUE,
    ("delete", "/api/v1/tenants/{tenant}/alert-channels/{channel}/"): access.CHANGE_CHANNELS,
    ("post", "/api/v1/tenants/{tenant}/alert-channels/{channel}/confirmation/"): access.CHANGE_CHANNELS,
    ("post", "/api/v1/tenants/{tenant}/alert-channels/{channel}/test/"): access.CHANGE_CHANNELS,
}


def test_every_unsafe_api_route_is_in_the_table_of_roles():
    unsafe = {
        (method, route.template)
        for route in ROUTES
        for method in route.methods()
        if method in UNSAFE and route.template.startswith("/api/")
        if not route.template.startswith((*LOOKUPS, *TESTS, *REGISTRY, *STAFFS))
    }
    patterns = {(method, template): re.sub("<[^>]+>", "[^/]+", template) for method, template in unsafe}
    found = [
        {one for one in unsafe if one[0] == method and re.fullmatch(patterns[one], path)} for method, path in NEEDS
    ]
    assert [needed for needed, routes in zip(NEEDS, found, strict=True) if len(routes) != 1] == []
    assert set.union(*found) == unsafe


@pytest.mark.parametrize(("method", "path"), NEEDS, ids=str)
def test_each_role_may_do_exactly_what_the_table_allows(
    method: str, path: str, pipe: Pipe, tenant: Tenant, client_of: MakeClient
):
    key, _plaintext = create_api_key(source=pipe.sources.get())
    ids = {name: row.id for name, row in delivery_rows(pipe).items()} | {"pipe": pipe.id, "key": key.id}
    ramp_of(pipe)
    Admission.objects.create(pipe=pipe, share=20, expected_per_s=1_000)
    member = User.objects.create_user("dora")
    add_member(tenant=tenant, user=member, role=Role.VIEWER)
    ids["token"] = _token_of(member, tenant).id  # of others only owners find one
    client = client_of(member)
    for role in Role:
        with transaction.atomic():
            tenant.memberships.filter(user=member).update(role=role)
            answer = getattr(client, method)(path.format(**ids, tenant=tenant.id), {})
            transaction.set_rollback(True)
        assert_answer_to(role, NEEDS[method, path], path, answer)


def assert_answer_to(role: Role, needed: str, path: str, answer: Any) -> None:
    if access.may(role, needed):
        # An empty body may be invalid, or there is nothing to probe, spread, repeat or promote; the role was accepted.
        nothing = ("nothing-to-probe", "unchanged", "replay-under-way", "revision-conflict")
        assert answer.status_code in (200, 201, 202, 204, 400) or answer.json()["code"] in nothing, role
    else:
        expected = (403, "role-too-low") if path != "/api/v1/pipes/" else (400, "invalid")
        assert (answer.status_code, answer.json()["code"]) == expected, role


@pytest.mark.parametrize(
    "path",
    [
        "pipes/{pipe}/moves/{move}/",
        "pipes/{pipe}/replays/{replay}/",
        "pipes/{pipe}/replays/{replay}/units/",
        "pipes/{pipe}/replays/{replay}/losses/",
        "pipes/{pipe}/replays/{replay}/timing/",
        "pipes/{pipe}/backfills/{backfill}/",
        "pipes/{pipe}/shadows/{shadow}/",
        "pipes/{pipe}/alerts/{alert}/",
        "pipes/{pipe}/dead-letters/{letter}/",
        "pipes/{pipe}/ignored-fields/{ignored}/",
        "pipes/{pipe}/rejections/{rejection}/",
        "tenants/{tenant}/alert-channels/{channel}/",
        "tenants/{tenant}/schemas/links/{link}/",
        "tenants/{tenant}/tokens/{token}/",
        "tenants/{tenant}/service-accounts/{account}/",
        "tenants/{tenant}/invitations/{invitation}/",
    ],
)
def test_row_of_another_tenant_is_not_found_under_the_users_own_path(
    path: str,
    pipe: Pipe,
    tenant: Tenant,
    charlie: User,
    client_of: MakeClient,
    a_spec: MakeSpec,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("mgmt.messages.queries.records.READ_S", 0.05)  # there is no broker here
    ids = {name: row.id for name, row in delivery_rows(pipe).items()}
    own = charlie.tenants.get()
    foreign = create_pipe(tenant=own, name="charlies", spec=a_spec(), author=charlie)
    method = "delete" if any(kind in path for kind in ("channels", "ignored", "links", "invitations")) else "get"
    alices = client_of(User.objects.get(username="alice"))
    charlies = getattr(client_of(charlie), method)(f"/api/v1/{path.format(**ids, pipe=foreign.id, tenant=own.id)}")
    assert charlies.status_code == 404
    mine = getattr(alices, method)(f"/api/v1/{path.format(**ids, pipe=pipe.id, tenant=tenant.id)}")
    assert mine.status_code in (200, 204)


def delivery_rows(pipe: Pipe) -> dict[str, Any]:
    """Create a row of each kind that belongs to a pipe or its tenant."""
    now = timezone.now()
    place = {"topic": "penstock.c1.dead.g1", "partition": 0, "offset": 0}
    move = Redrive.objects.create(
        pipe=pipe, destination="crm", what="redrive", chosen={}, taken=[], total=0, rate_per_s=1.0
    )
    letter = DeadLetter.objects.create(
        pipe_id=pipe.id,
        destination="crm",
        node="transmit:crm",
        cause="rejected",
        message_id="m",
        position=0,
        bucket=1,
        revision=1,
        attempts=0,
        at=now,
        **place,
    )
    alert = Alert.objects.create(pipe=pipe, destination="crm", cause="tls", opened_at=now, last_at=now)
    channel, _ = add_active_channel(tenant=pipe.tenant, kind="mail", target="a@example.com")
    by = User.objects.get(username="alice")
    ignored = ignore_field(pipe=pipe, source="shop", path="score", by=by, now=now)
    rejection = Rejection.objects.create(
        pipe=pipe, source="shop", code="schema", sender="kafka", first_at=now, last_at=now
    )
    rows = {"move": move, "letter": letter, "alert": alert, "channel": channel, "ignored": ignored}
    replay = Replay.objects.create(
        tenant=pipe.tenant,
        pipe=pipe,
        cell=Cell.objects.create(id="c9"),
        created_at=now,
        state_since=now,
        bucket=1,
        revision=1,
        destinations=["crm"],
        since=now,
        until=now,
        rate_per_s=50.0,
    )
    backfill = Backfill.objects.create(pipe=pipe, destination="crm", revision=1, beginning="earliest", created_at=now)
    shadow = Shadow.objects.create(
        tenant=pipe.tenant,
        pipe=pipe,
        cell_id="c9",
        created_at=now,
        state_since=now,
        spec=pipe.revisions.get(number=1).spec,
        revision=1,
        based_on=1,
        since=now,
        most_events=0,
    )
    link, _ = create_catalogue_link(tenant=pipe.tenant, author=by, label="Partner", days=1, now=now)
    account = create_service_account(tenant=pipe.tenant, name="deploy", role="viewer", by=by, now=now)
    invitation = invite_member(tenant=pipe.tenant, email="ada@example.com", role=Role.VIEWER, by=by, now=now)
    SsoConnection.objects.create(tenant=pipe.tenant, issuer="https://idp.example.com", client_id="x", created_at=now)
    SsoDomain.objects.create(tenant=pipe.tenant, domain="acme.example", token="t", verified_at=now)
    rows |= {"account": account, "token": _token_of(by, pipe.tenant), "invitation": invitation}
    return rows | {"rejection": rejection, "link": link, "replay": replay, "backfill": backfill, "shadow": shadow}


def _token_of(user: User, tenant: Tenant) -> ApiToken:
    token, _ = create_token(tenant=tenant, user=user, by=user, name="x", scope="read", days=1, now=timezone.now())
    return token


def ramp_of(pipe: Pipe) -> Ramp:
    """Make the first revision live and begin the ramp of a second one."""
    pipe.revisions.update(state="live")
    second = PipeRevision.objects.create(pipe=pipe, number=2, spec=pipe.revisions.get().spec)
    begin_ramp(revision=second, share=1, now=timezone.now())
    return Ramp.objects.get(revision=second)


def test_only_a_role_that_may_create_pipes_creates_one(
    pipe: Pipe, tenant: Tenant, client_of: MakeClient, a_spec: MakeSpec
):
    viewer = User.objects.create_user("dora")
    add_member(tenant=tenant, user=viewer, role=Role.VIEWER)
    answer = client_of(viewer).post("/api/v1/pipes/", {"name": "x", "spec": a_spec()})
    assert (answer.status_code, answer.json()["code"]) == (403, "role-too-low")
    assert Pipe.objects.count() == 1


def test_pipe_cannot_be_created_in_another_tenant(
    tenant: Tenant, charlie: User, client_of: MakeClient, a_spec: MakeSpec
):
    body = {"name": "x", "spec": a_spec(), "tenant": tenant.id}
    assert client_of(charlie).post("/api/v1/pipes/", body).status_code == 404
    assert not Pipe.objects.exists()


def test_lists_contain_only_the_users_own_tenants(
    pipe: Pipe, charlie: User, bob: User, client_of: MakeClient, a_spec: MakeSpec
):
    own = charlie.tenants.get()
    create_pipe(tenant=own, name="charlies", spec=a_spec(), author=charlie)
    seen = {user: client_of(user).get("/api/v1/pipes/").json()["results"] for user in (bob, charlie)}
    assert [(p["name"], p["my_role"]) for p in seen[bob]] == [("orders", "editor")]
    assert [(p["name"], p["my_role"]) for p in seen[charlie]] == [("charlies", "owner")]


def test_removed_role_ends_with_the_next_request(pipe: Pipe, bob: User, client_of: MakeClient):
    client = client_of(bob)
    assert client.get(f"/api/v1/pipes/{pipe.id}/").status_code == 200
    Membership.objects.filter(user=bob).delete()
    assert client.get(f"/api/v1/pipes/{pipe.id}/").status_code == 404


def test_roles_are_ordered():
    order = [Role.VIEWER, Role.OPERATOR, Role.EDITOR, Role.OWNER]
    for held, role in enumerate(order):
        assert [access.may(role, need) for need in order] == [held >= asked for asked in range(4)]
    assert not access.may(None, Role.VIEWER)


def path_of(route: Route, pipe: Pipe, *, missing: bool = False) -> str:
    """Return the path of a route with the ids of the pipe and its tenant; `missing`: of none that exists."""
    values = {"pipe": pipe.id, "pipe_id": pipe.id, "key": "key_00000000000000000000", "name": "crm", "number": "1"}
    values |= {
        "key_id": "key_00000000000000000000",
        "source": "shop",
        "bucket": "29384711",
        "position": "1-0-0",
        "alert_id": "alert_0",
        "move_id": "move_0",
        "alert": "alert_00000000000000000000",
        "move": "move_00000000000000000000",
        "replay": "replay_00000000000000000000",
        "replay_id": "replay_0",
        "backfill": "backfill_00000000000000000000",
        "backfill_id": "backfill_0",
        "shadow": "shadow_00000000000000000000",
        "shadow_id": "shadow_0",
        "channel": "chan_00000000000000000000",
        "link": "link_00000000000000000000",
        "token": "tok_00000000000000000000",
        "account": "svc_00000000000000000000",
        "ignored": "field_00000000000000000000",
        "rejection": "1",
        "ignored_id": "field_0",
        "tenant": pipe.tenant_id,
        "username": "bob",
        "invitation": "inv_00000000000000000000",
        "subject": "orders-value",
        "domain": "acme.example",
        "version": "1",
    }
    if missing:
        values |= {"pipe": MISSING, "pipe_id": MISSING, "tenant": MISSING_TENANT}
    path = route.template
    for name in route.arguments:
        start = path.index("<")
        path = path[:start] + values[name] + path[path.index(">") + 1 :]
    return path


def _without_traces(body: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in body.items() if k not in ("instance", "request_id")}
