"""SQL of row-level security, for migrations: policies by tenant, and the rights of the web role.

A new table of a tenant needs one of `by_tenant` and `through` in its migration; without it,
tests/db/mgmt/test_row_security.py fails. FORCE: the policies apply to the owner of the tables, too.
"""

from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from mgmt.tenancy.row_scope import WEB_ROLE_SQL

POLICY: Final = "tenant_in_scope"
# A session of the web role that has set nothing sees nothing. One of another role, such as psql, or a process of the
# release before this, sees everything; after a rollback, a setting that was never set is empty. Each part is a
# sub-select: Postgres evaluates it once per statement.
_SCOPE: Final = (
    "coalesce(nullif(current_setting('penstock.tenants', true), ''),"
    f" CASE WHEN current_user = {WEB_ROLE_SQL} THEN '' ELSE '*' END)"
)
_ALL: Final = f"(SELECT {_SCOPE}) = '*'"
_TENANTS: Final = f"ANY ((SELECT string_to_array({_SCOPE}, ','))::text[])"
OTHER_TABLES: Final = ("mgmt_cache",)  # that have no model
# The owner may switch to the role: superusers may anyway, others are made members. From Postgres 16 on, who creates a
# role is a member that may not switch to it.
_ENSURE_ROLE: Final = f"""
DO $$
DECLARE
    web text := {WEB_ROLE_SQL};
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = web) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN', web);
    END IF;
    IF NOT pg_has_role(
        current_user, web,
        CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END
    ) THEN
        EXECUTE format('GRANT %I TO CURRENT_USER', web);
    END IF;
    IF NOT has_schema_privilege(web, current_schema(), 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), web);
    END IF;
    IF NOT has_database_privilege(web, current_database(), 'TEMPORARY') THEN
        EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I', current_database(), web);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'cannot create the database role of requests: %', SQLERRM USING
        ERRCODE = 'insufficient_privilege',
        HINT = format(
            'As an administrator of the server run: CREATE ROLE %1$I NOLOGIN; GRANT %1$I TO %2$I; then migrate again.',
            web, current_user);
END $$;
"""
_WITHOUT_RIGHTS: Final = f"""
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname = ANY(%s)
    AND NOT has_table_privilege({WEB_ROLE_SQL}, oid, 'DELETE')
"""  # noqa: S608 only constants of this module


def by_tenant(table: str, column: str = "tenant_id") -> str:
    """Return the SQL of the policy of a table with the tenant's id in a column."""
    return _policy(table, f"{column} = {_TENANTS}")


def through(table: str, *parents: tuple[str, str, str], more: str = "") -> str:
    """Return the SQL of the policy of a table whose rows belong to the tenant of another row.

    parents: (column, parent's table, parent's column); one of them must be visible, by the policy of its own table
    more:    condition of further rows that every tenant may see
    """
    seen = [
        f"EXISTS (SELECT FROM {parent} AS parent WHERE parent.{key} = {table}.{column})"
        for column, parent, key in parents
    ]
    return _policy(table, " OR ".join([*seen, *([more] if more else [])]))


def without_policy(table: str) -> str:
    """Return the SQL that undoes `by_tenant` and `through`."""
    return (
        f"DROP POLICY {POLICY} ON {table};ALTER TABLE {table} DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;"
    )


def grant_rights(connection: BaseDatabaseWrapper) -> None:
    """Create the web role if it is missing, and give it rights on tables without them; to run after each migration.

    Partitions get no rights: the policies of their table do not apply to a statement that names the partition.
    The table of migrations is readable, for `migrate --check` by a login of the web process.
    """
    names = [*connection.introspection.django_table_names(only_existing=True), *OTHER_TABLES]
    with connection.cursor() as cursor:
        cursor.execute(_ENSURE_ROLE)
        cursor.execute(f"SELECT {WEB_ROLE_SQL}")
        role = connection.ops.quote_name(cursor.fetchone()[0])
        cursor.execute(_WITHOUT_RIGHTS, [names])
        if tables := ", ".join(connection.ops.quote_name(name) for (name,) in cursor.fetchall()):
            cursor.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {role}")
        cursor.execute(f"GRANT SELECT ON {MigrationRecorder.Migration._meta.db_table} TO {role}")


def _policy(table: str, condition: str) -> str:
    return (
        f"DROP POLICY IF EXISTS {POLICY} ON {table};"
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
        f"CREATE POLICY {POLICY} ON {table} USING ({_ALL} OR {condition});"
    )
