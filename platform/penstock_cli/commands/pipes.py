"""Commands about pipes: `validate`, `diff`, `apply`, `export`, `replay`. Slow imports are made when a command runs."""

from pathlib import Path
from typing import Annotated

import typer

from penstock_cli.options import JsonOption, PipeOption, ProfileOption, TenantOption, YesOption, examples

FileArgument = Annotated[Path, typer.Argument(help="Document of kind Pipe, in YAML.")]
CredentialsOption = Annotated[
    bool,
    typer.Option("--credentials", help="Also set the credentials that are stored already; they cannot be compared."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(
        epilog=examples(
            "penstock validate orders.yaml",
            "penstock validate orders.yaml --sample event.json",
            """echo '{"total": 5}' | penstock validate orders.yaml --sample -""",
        )
    )(validate)
    app.command(epilog=examples("penstock diff orders.yaml", "penstock diff orders.yaml --json"))(diff)
    app.command(epilog=examples("penstock apply orders.yaml", "penstock apply orders.yaml --yes"))(apply)
    app.command(epilog=examples("penstock export orders > orders.yaml", "penstock export orders --out pipes --rows"))(
        export
    )
    app.command(
        epilog=examples(
            "penstock replay --pipe orders --since 2h --until 1h",
            "penstock replay --pipe orders --since 2h --until 1h --destination books --where 'body.total > 100' --yes",
            "penstock replay --pipe orders --since 1d --until 5m --rehearsal",
        )
    )(replay)


def validate(
    file: FileArgument,
    sample: Annotated[str, typer.Option(help="File with an event for a dry run; `-` is stdin.")] = "",
    source: Annotated[str, typer.Option(help="Source at which the event enters. Default: the first.")] = "",
    as_json: JsonOption = False,
    tenant: TenantOption = "",
    profile: ProfileOption = "",
) -> None:
    """Check a document; with a sample, run its spec on the event. Nothing is sent or stored.

    Without a sample no server is needed. Look-up tables are read once the pipe exists. Exits with 1 if the document is
    not valid, or if the sample fails.
    """
    from penstock_cli.run_pipes import run_validate

    run_validate(file, sample, source, tenant, as_json=as_json, profile=profile)


def diff(
    file: FileArgument,
    as_json: JsonOption = False,
    tenant: TenantOption = "",
    profile: ProfileOption = "",
) -> None:
    """Show in words how a document differs from the tenant. Exits with 2 if it does."""
    from penstock_cli.run_pipes import run_diff

    run_diff(file, tenant, as_json=as_json, profile=profile)


def apply(
    file: FileArgument,
    credentials: CredentialsOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    tenant: TenantOption = "",
    profile: ProfileOption = "",
) -> None:
    """Make the tenant as a document says: tables, schemas, pipe, credentials, event types and channels.

    The plan is shown first. A second run changes nothing. Nothing is removed that the document does not name, apart
    from parts of the pipe's spec.
    """
    from penstock_cli.run_pipes import run_apply

    run_apply(file, tenant, credentials=credentials, yes=yes, as_json=as_json, profile=profile)


def export(
    pipe: Annotated[str, typer.Argument(help="Id or name of the pipe.")],
    out: Annotated[Path | None, typer.Option(help="Folder for <name>.yaml. Default: standard output.")] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="With --out: also write the rows of its look-up tables.")
    ] = False,
    as_json: JsonOption = False,
    tenant: TenantOption = "",
    profile: ProfileOption = "",
) -> None:
    """Write the document of a pipe. Secrets are replaced by ${VARIABLES}."""
    from penstock_cli.run_pipes import run_export

    run_export(pipe, tenant, out, rows=rows, as_json=as_json, profile=profile)


def replay(
    pipe: PipeOption,
    since: Annotated[str, typer.Option(help="Ingest time of the first events: a duration or a time.")],
    until: Annotated[str, typer.Option(help="End of the range: a duration or a time.")],
    revision: Annotated[
        int | None, typer.Option(min=1, help="Revision whose steps run. Default: the live one.")
    ] = None,
    destination: Annotated[list[str] | None, typer.Option(help="Only to this destination; repeatable.")] = None,
    where: Annotated[str, typer.Option(help="Condition over `body` and `meta`.")] = "",
    key: Annotated[list[str] | None, typer.Option(help="Only events with this key; repeatable.")] = None,
    message: Annotated[
        list[str] | None, typer.Option("--id", help="Only the message with this id; repeatable.")
    ] = None,
    revisions: Annotated[
        list[int] | None, typer.Option("--accepted-under", help="Only events of this revision; repeatable.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.01, help="Messages per second. Default: that of the API.")] = None,
    rehearsal: Annotated[bool, typer.Option("--rehearsal", help="Only count; send nothing.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the replay has ended.")] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    profile: ProfileOption = "",
) -> None:
    """Deliver the events of a range of time once more: rehearse, show the counts, ask, then start.

    Exits with 1 if the replay fails, or the rehearsal finds nothing.
    """
    from penstock_cli.run_replay import ReplaySelection, run_replay

    options = ReplaySelection(
        since=since,
        until=until,
        revision=revision,
        destinations=destination or [],
        where=where,
        keys=key or [],
        ids=message or [],
        revisions=revisions or [],
        rate_per_s=rate,
    )
    run_replay(pipe, options, rehearsal=rehearsal, wait=wait, yes=yes, as_json=as_json, profile=profile)
