"""Row-level security: the wall behind the application's filters, and that no table and no request is without it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
import pytest
from django.apps import apps
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, transaction
from django.db.models import Value
from django.http import StreamingHttpResponse
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.test import APIClient

from config.middleware import RowScopeOfRequest
from mgmt.models import Membership, Pipe, Tenant, User
from mgmt.services import create_pipe, create_tenant, create_token
from mgmt.tenancy.row_policies import POLICY, grant_rights
from mgmt.tenancy.row_scope import (
    EVERY_TENANT,
    NO_TENANT,
    UNRESTRICTED,
    WEB_ROLE_SQL,
    RowScope,
    all_tenants,
    current_scope,
    open_to_staff,
    restrict_to,
    row_scope,
    scope_of,
)
from mgmt.web import access
from tests.db.cast import MakeClient, MakeSpec
from tests.db.mgmt.test_access_matrix import OF_A_ROW, path_of
from tests.support.doc_blocks import documented

# Tables without a policy, with the reason. Every other table of a model has one.
ACCOUNTS = "an account is a person's, who may be a member of several tenants, and is read before its tenants are known"
INFRASTRUCTURE = "a state of cells, releases or controllers, which tenants share; staff pages show it"
OFFSETS = "progress of a controller over topics that tenants share; no tenant is named"
FRAMEWORK = "a table of Django without a tenant"
SHARED = {
    "account_emailaddress": ACCOUNTS,
    "account_emailconfirmation": ACCOUNTS,
    "auth_group": FRAMEWORK,
    "auth_group_permissions": FRAMEWORK,
    "auth_permission": FRAMEWORK,
    "django_admin_log": "entries of the admin site, which only staff open",
    "django_content_type": FRAMEWORK,
    "django_session": ACCOUNTS,
    "mfa_authenticator": ACCOUNTS,
    "mgmt_auditoffset": OFFSETS,
    "mgmt_cell": INFRASTRUCTURE,
    "mgmt_closemark": OFFSETS,
    "mgmt_heartbeat": INFRASTRUCTURE,
    "mgmt_idempotentresponse": "sealed, and bound to the user and the API token of its request",
    "mgmt_incident": "one cause and a number of tenants, without their names",
    "mgmt_kafkacheck": INFRASTRUCTURE,
    "mgmt_lease": INFRASTRUCTURE,
    "mgmt_ledgerday": OFFSETS,
    "mgmt_limitcount": "counts of attempts by digest",
    "mgmt_passed": OFFSETS,
    "mgmt_patternmark": OFFSETS,
    "mgmt_pause": INFRASTRUCTURE,
    "mgmt_rating": INFRASTRUCTURE,
    "mgmt_release": INFRASTRUCTURE,
    "mgmt_reportrun": OFFSETS,
    "mgmt_rollout": INFRASTRUCTURE,
    "mgmt_rolloutstep": INFRASTRUCTURE,
    "mgmt_rollupmark": OFFSETS,
    "mgmt_scalegroup": INFRASTRUCTURE,
    "mgmt_scalesample": INFRASTRUCTURE,
    "mgmt_tick": INFRASTRUCTURE,
    "mgmt_topic": INFRASTRUCTURE,
    "mgmt_user": ACCOUNTS,
    "mgmt_user_groups": ACCOUNTS,
    "mgmt_user_user_permissions": ACCOUNTS,
    "mgmt_verdict": INFRASTRUCTURE,
    "usersessions_usersession": ACCOUNTS,
    "socialaccount_socialaccount": ACCOUNTS,
    "socialaccount_socialapp": "always empty: the rows of mgmt_ssoconnection are the applications",
    "socialaccount_socialtoken": "always empty: tokens of providers are not stored",
}
MODELS = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}


def test_every_table_of_a_model_has_a_policy_or_a_reason(db: None):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid"
            " WHERE p.polname = %s AND c.relrowsecurity AND c.relforcerowsecurity",
            [POLICY],
        )
        walled = {name for (name,) in cursor.fetchall()}
    assert walled & SHARED.keys() == set()
    assert walled | SHARED.keys() == MODELS.keys()


def test_web_role_owns_nothing_bypasses_nothing_and_names_no_partition(db: None):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {WEB_ROLE_SQL}")
        role = cursor.fetchone()[0]
        cursor.execute("SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = %s", [role])
        assert cursor.fetchone() == (False, False, False)
        cursor.execute("SELECT count(*) FROM pg_class WHERE relowner = %s::regrole", [role])
        assert cursor.fetchone() == (0,)
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'"
            " AND has_table_privilege(%s, oid, 'SELECT')",
            [role],
        )
        assert cursor.fetchall() == []


def test_login_of_the_guide_has_the_rights_of_a_request_only(transactional_db: None):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {WEB_ROLE_SQL}")
        role = cursor.fetchone()[0]
        statements = documented("operations.md", "postgresql").replace("penstock_web_penstock", role)
        cursor.execute(statements.replace("...", "a-long-password"))
        try:
            own = {"user": "penstock_pages", "password": "a-long-password", "context": None, "cursor_factory": None}
            params = connection.get_connection_params() | own
            with psycopg.connect(**{name: value for name, value in params.items() if value is not None}) as pages:
                assert pages.execute("SELECT session_user, current_user").fetchone() == ("penstock_pages", role)
                assert pages.execute("SELECT count(*) FROM mgmt_tenant").fetchone() == (0,)
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    pages.execute("ALTER TABLE mgmt_tenant DISABLE ROW LEVEL SECURITY")
        finally:
            cursor.execute("DROP ROLE penstock_pages")


Place = tuple[Any, ...]  # where Postgres stores a row
PARENTS = {"mgmt_tenant", "mgmt_pipe"}  # each tenant of the tests has these rows already
VALUES = {
    "bool": False,
    "bytea": b"",
    "date": "2026-01-01",
    "float8": 1.0,
    "jsonb": "{}",
    "timestamptz": "2026-01-01T00:00Z",
}
_COLUMNS = """
SELECT column_name, udt_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s AND is_identity = 'NO'
    AND (is_nullable = 'NO' AND column_default IS NULL OR column_name = 'pipe_id')
"""


class Cast(NamedTuple):
    """A tenant with a row of every kind, each named `mark`; `ids`: their keys by table."""

    tenant_id: str
    mark: int
    ids: dict[str, Any]


@pytest.fixture
def casts(pipe: Pipe, tenant: Tenant, charlie: User, a_spec: MakeSpec) -> list[Cast]:
    """Return Alice's and Charlie's tenants, each with a row in every table that has a policy."""
    theirs = charlie.tenants.get()
    own = create_pipe(tenant=theirs, name="charlies", spec=a_spec(), author=charlie)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # rows may refer to accounts that do not exist
    alices = Cast(tenant.id, 11, {"mgmt_tenant": tenant.id, "mgmt_pipe": pipe.id})
    charlies = Cast(theirs.id, 12, {"mgmt_tenant": theirs.id, "mgmt_pipe": own.id})
    for cast in (alices, charlies):
        for table in WALLED:
            cast.ids[table] = insert(table, cast)
    return [alices, charlies]


def insert(table: str, cast: Cast) -> Any:
    """Insert a row of the tenant, whose references to tables with a policy are its other rows; return its key."""
    model = MODELS[table]
    targets = {field.attname: _target(field) for field in model._meta.concrete_fields if field.is_relation}
    values: dict[str, Any] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, [table])
        for name, kind in cursor.fetchall():
            target = targets.get(name, "mgmt_pipe" if name == "pipe_id" else "")
            mark = -cast.mark if target == "mgmt_user" else cast.mark  # accounts of tests have positive keys
            values[name] = cast.ids.get(target) or VALUES.get(kind, mark)
        if table == "mgmt_controlaction":
            values["outcome"] = "done"
        columns = ", ".join(map(connection.ops.quote_name, values))
        key = getattr(model._meta.pk, "columns", None) or [model._meta.pk.column]
        places = ", ".join(["%s"] * len(values))
        cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({places}) RETURNING {key[0]}", list(values.values()))  # noqa: S608
        return cursor.fetchone()[0]


def _by_dependency() -> list[str]:
    """Return the tables with a policy whose rows the tests add, each after those that its rows refer to."""
    left, ordered = MODELS.keys() - SHARED.keys() - PARENTS, []
    while left:
        ready = sorted(table for table in left if not (_targets(table) - {table}) & left)
        assert ready
        ordered += ready
        left -= {*ready}
    return ordered


def _targets(table: str) -> set[str]:
    fields = MODELS[table]._meta.concrete_fields
    return {_target(field) for field in fields if field.is_relation and not field.null}


def _target(field: Any) -> str:
    name: str = field.related_model._meta.db_table
    return name


WALLED = _by_dependency()


def seen(table: str) -> set[Place]:
    """Return the places of the rows that a statement without any filter finds."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid, ctid::text FROM {table}")  # noqa: S608
        return {*cursor.fetchall()}


def test_statement_without_a_filter_finds_the_rows_of_the_tenants_in_scope_only(casts: list[Cast]):
    for table in (*WALLED, *PARENTS):
        every = seen(table)
        with row_scope(NO_TENANT):
            assert (table, seen(table)) == (table, set())
        found = []
        for cast in casts:
            with row_scope(scope_of([cast.tenant_id])):
                found.append(seen(table))
        assert all(found), table
        assert found[0] & found[1] == set(), table
        assert found[0] | found[1] == every, table
        with row_scope(scope_of([cast.tenant_id for cast in casts])):
            assert seen(table) == every
        with row_scope(EVERY_TENANT):
            assert seen(table) == every


def test_row_of_another_tenant_is_neither_changed_nor_deleted_nor_added(casts: list[Cast]):
    alices, charlies = casts
    for table in WALLED:
        column = MODELS[table]._meta.concrete_fields[-1].column
        every = len(seen(table))
        with row_scope(scope_of([charlies.tenant_id])):
            own = len(seen(table))
            with connection.cursor() as cursor:
                cursor.execute(f'UPDATE {table} SET "{column}" = "{column}"')  # noqa: S608
                assert (table, cursor.rowcount) == (table, own)
            with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
                insert(table, alices._replace(mark=13))
            with suppress(IntegrityError), transaction.atomic():  # of some tables a tenant has one row
                insert(table, charlies._replace(mark=14))
        assert every <= len(seen(table)) <= every + 1, table


def test_requests_whose_filter_by_tenant_is_missing_find_no_foreign_row(
    pipe: Pipe, charlie: User, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
):
    def every_tenant(_user: User) -> Any:
        return Tenant.objects.order_by("name", "id")

    def every_pipe(_user: User) -> Any:
        return Pipe.objects.order_by("-created_at", "-id")

    monkeypatch.setattr(access, "tenants_of", every_tenant)
    monkeypatch.setattr(access, "pipes_of", every_pipe)
    monkeypatch.setattr(access, "role_in", lambda _user, _tenant_id: Membership.Role.OWNER)
    client = client_of(charlie)
    reached, found = [], 0
    for route in OF_A_ROW:
        for method in route.methods():
            with transaction.atomic():
                answer = getattr(client, method)(path_of(route, pipe))
                transaction.set_rollback(True)
            reached += [] if answer.status_code in (404, 405) else [(method, route.template, answer.status_code)]
            found += 1
    assert (reached, found > 200) == ([], True)
    monkeypatch.setattr("config.middleware.restrict_to", lambda _ids: open_to_staff())
    assert client.get(f"/pipes/{pipe.id}/").status_code == 200  # the filters are indeed gone: only the wall was left


def test_lists_without_their_filter_show_only_the_users_own_tenants(
    pipe: Pipe, charlie: User, client_of: MakeClient, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
):
    create_pipe(tenant=charlie.tenants.get(), name="charlies", spec=a_spec(), author=charlie)
    monkeypatch.setattr(access, "pipes_of", lambda _user: Pipe.objects.order_by("-created_at", "-id"))
    monkeypatch.setattr(access, "with_roles", lambda _user, rows: rows.annotate(my_role=Value("owner")))
    answer = client_of(charlie).get("/api/v1/pipes/").json()
    assert [row["name"] for row in answer["results"]] == ["charlies"]


def test_api_token_narrows_the_scope_to_its_tenant(alice: User, tenant: Tenant, monkeypatch: pytest.MonkeyPatch):
    create_tenant(name="Alice's second", owner=alice)
    now = timezone.now()
    _, text = create_token(tenant=tenant, user=alice, by=alice, name="x", scope="read", days=1, now=now)
    scopes: list[RowScope] = []

    def note_scope(_user: User) -> list[Membership]:
        scopes.append(current_scope())
        return []

    monkeypatch.setattr(access, "memberships_of", note_scope)
    APIClient().get("/api/v1/me/", headers={"Authorization": f"Bearer {text}"})
    session = APIClient()
    session.force_login(alice)
    session.get("/api/v1/me/")
    assert scopes == [scope_of([tenant.id]), scope_of(alice.tenants.values_list("id", flat=True))]


def test_scope_of_a_request_ends_with_it_and_covers_its_stream(alice: User, tenant: Tenant):
    request = RequestFactory().get("/", headers={"Cookie": "penstock_session=x"})
    request.user = alice

    def lines() -> Iterator[bytes]:
        yield current_scope().tenants.encode()

    response = RowScopeOfRequest(lambda _request: StreamingHttpResponse(lines()))(request)
    assert current_scope() == UNRESTRICTED
    assert [*response.streaming_content] == [tenant.id.encode()]  # type: ignore[attr-defined]
    assert current_scope() == UNRESTRICTED


def test_staff_see_all_tenants_on_staff_pages_only(pipe: Pipe, charlie: User, client_of: MakeClient):
    User.objects.filter(pk=charlie.pk).update(is_staff=True, is_superuser=True)
    client = client_of(charlie)
    assert "Alice&#x27;s" in client.get("/staff/tenants/").content.decode()
    assert client.get(f"/admin/mgmt/pipe/{pipe.id}/change/").status_code == 200
    assert client.get(f"/pipes/{pipe.id}/").status_code == 404


@pytest.mark.parametrize("leave", ["savepoint", "error"])
def test_rollback_restores_the_scope_of_the_code_and_not_that_of_the_connection(casts: list[Cast], leave: str):
    alices, charlies = casts
    with row_scope(scope_of([alices.tenant_id])):
        mine = seen("mgmt_pipe")
        try:
            with transaction.atomic():
                with row_scope(scope_of([charlies.tenant_id])):
                    assert seen("mgmt_pipe") != mine
                    if leave == "error":
                        with connection.cursor() as cursor:
                            cursor.execute("SELECT 1 / 0")
                transaction.set_rollback(True)
        except DatabaseError:
            assert leave == "error"
        assert seen("mgmt_pipe") == mine


def test_scope_that_began_in_a_savepoint_applies_after_its_rollback(casts: list[Cast]):
    with row_scope(EVERY_TENANT):
        every = seen("mgmt_pipe")
        with transaction.atomic():
            restrict_to([casts[0].tenant_id])
            own = seen("mgmt_pipe")
            transaction.set_rollback(True)
        assert seen("mgmt_pipe") == own < every


def test_all_tenants_ends_with_its_block_and_leaves_other_processes_alone():
    with row_scope(NO_TENANT):
        with all_tenants("authentication"):
            assert current_scope() == EVERY_TENANT
        assert current_scope() == NO_TENANT
        restrict_to(["ten_1"])
        assert current_scope() == scope_of(["ten_1"])
    with all_tenants("placement"):
        assert current_scope() == UNRESTRICTED


@pytest.mark.django_db(transaction=True)
def test_scope_that_began_in_a_transaction_applies_after_its_rollback(tenant: Tenant):
    with row_scope(EVERY_TENANT):
        assert seen("mgmt_tenant")
        with transaction.atomic():
            restrict_to([])
            assert not seen("mgmt_tenant")
            transaction.set_rollback(True)
        assert not seen("mgmt_tenant")


@pytest.mark.django_db(transaction=True)
def test_connection_that_another_request_has_used_keeps_no_scope(tenant: Tenant):
    def see_all() -> None:
        with row_scope(EVERY_TENANT):
            assert seen("mgmt_tenant")
        connection.close()

    with row_scope(NO_TENANT), ThreadPoolExecutor(1) as another:
        assert not seen("mgmt_tenant")
        connection.close()  # back to the pool, from which the other thread takes it
        another.submit(see_all).result()
        assert not seen("mgmt_tenant")
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT current_user = {WEB_ROLE_SQL}")
            assert cursor.fetchone() == (True,)


@pytest.mark.django_db(transaction=True)
def test_scope_applies_after_the_commit_of_a_failed_transaction(tenant: Tenant):
    """Postgres answers the commit with a rollback, which reverts the setting; Django sees no error."""
    with row_scope(EVERY_TENANT):
        assert seen("mgmt_tenant")
        with transaction.atomic():
            restrict_to([])
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        assert not seen("mgmt_tenant")


@pytest.mark.django_db(transaction=True)
def test_copy_runs_in_the_scope(tenant: Tenant):
    copy = "COPY (SELECT id FROM mgmt_tenant) TO STDOUT"
    with row_scope(NO_TENANT), connection.cursor() as cursor, cursor.copy(copy) as rows:
        assert list(rows) == []


@pytest.mark.django_db(transaction=True)
def test_migrate_ignores_foreign_tables_and_creates_a_role_that_is_missing():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE of_another_tool (id int)")
        cursor.execute(f"SELECT {WEB_ROLE_SQL}")
        role = connection.ops.quote_name(cursor.fetchone()[0])
        cursor.execute(f"DROP OWNED BY {role}")
        cursor.execute(f"DROP ROLE {role}")
    try:
        grant_rights(connection)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT has_table_privilege({WEB_ROLE_SQL}, 'of_another_tool', 'SELECT')")
            assert cursor.fetchone() == (False,)
        with row_scope(EVERY_TENANT):
            seen("mgmt_tenant")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE of_another_tool")
