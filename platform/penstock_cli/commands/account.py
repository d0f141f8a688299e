"""Commands about the installation: `login` and `status`. Imports that take long are made when a command runs."""

from typing import Annotated

import typer

from penstock_cli.options import JsonOption, ProfileOption, TenantOption, examples


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(epilog=examples("penstock login --url https://penstock.example.com"))(login)
    app.command(epilog=examples("penstock status", "penstock status --json"))(status)


def login(
    url: Annotated[str, typer.Option(prompt="URL", envvar="PENSTOCK_URL", help="URL of the console.")],
    token: Annotated[
        str,
        typer.Option(prompt="API token", hide_input=True, envvar="PENSTOCK_TOKEN", help="API token, `pst_...`."),
    ],
    profile: ProfileOption = "",
) -> None:
    """Store the URL and an API token, after a check that they are valid.

    They are stored in the user's settings folder, in a file that only the user can read. PENSTOCK_URL and
    PENSTOCK_TOKEN win over it.
    """
    from penstock_cli.connection import Connection
    from penstock_cli.output import write
    from penstock_cli.profiles import DEFAULT, Profile, checked_url, save_profile
    from penstock_client.api.operations import get_me

    chosen = Profile(checked_url(url), token.strip())
    me = Connection(chosen).call(get_me.sync_detailed)
    path = save_profile(profile or DEFAULT, chosen)
    tenants = ", ".join(f"{one.name} ({one.role})" for one in me.tenants) or "no tenant"
    write(f"signed in to {chosen.url} as {me.username}: {tenants}; stored in {path}")


def status(
    as_json: JsonOption = False,
    tenant: TenantOption = "",
    profile: ProfileOption = "",
) -> None:
    """List the pipes with state, lag, undelivered messages and open alerts."""
    from penstock_cli.options import connect
    from penstock_cli.output import write, write_columns, write_json
    from penstock_cli.status import HEAD, columns_of, status_lines
    from penstock_cli.tenants import tenant_id

    connection = connect(profile)
    lines = status_lines(connection, tenant_id(connection, tenant))
    if as_json:
        write_json(lines)
    elif lines:
        write_columns(HEAD, map(columns_of, lines))
    else:
        write("there are no pipes yet; create one with `penstock apply FILE`")
