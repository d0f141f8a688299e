"""Tenants and pipes by name or id, as people type them."""

from typing import Any

from penstock_cli.connection import Connection
from penstock_cli.errors import CliError
from penstock_client.api.operations import get_me, get_pipe, list_pipes


def tenant_id(connection: Connection, asked: str = "") -> str:
    """Return the id of a tenant by id or name, or of the only one. Raises CliError."""
    tenants = connection.call(get_me.sync_detailed).tenants
    found = [one for one in tenants if asked in ("", one.id, one.name)]
    if len(found) == 1:
        return str(found[0].id)
    known = ", ".join(f"{one.name} ({one.id})" for one in tenants) or "none"
    reason = f"tenant `{asked}` does not exist" if not found else "there are several tenants"
    raise CliError(reason, hint=f"Choose one with --tenant: {known}.")


def pipe_named(connection: Connection, tenant: str, name: str) -> Any:
    """Return the open pipe of this name in a tenant, or None. A closed one is returned only if there is no other."""
    rows = [one for one in connection.pages(list_pipes.sync_detailed) if one.name == name and one.tenant == tenant]
    return min(rows, key=lambda one: str(one.state) == "closed", default=None)


def pipe_of(connection: Connection, asked: str, tenant: str = "") -> Any:
    """Return a pipe by id or by name. Raises CliError, also if several tenants have a pipe of this name."""
    if asked.startswith("pipe_"):
        return connection.call(get_pipe.sync_detailed, asked)
    rows = [
        one for one in connection.pages(list_pipes.sync_detailed) if one.name == asked and tenant in ("", one.tenant)
    ]
    if len(rows) == 1:
        return rows[0]
    if rows:
        ids = ", ".join(one.id for one in rows)
        raise CliError(f"several pipes are named `{asked}`", hint=f"Use an id: {ids}.")
    raise CliError(f"pipe `{asked}` does not exist", hint="`penstock status` lists the pipes that you can see.")
