"""Commands about events: `send`, `tail`, `events`, `explain`, `listen`. Slow imports are made when a command runs."""

from pathlib import Path
from typing import Annotated

import typer

from penstock_cli.options import JsonOption, PipeOption, ProfileOption, TenantOption, examples

SourceOption = Annotated[str, typer.Option("--source", help="Only events of this source.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(
        epilog=examples(
            """penstock send --pipe orders '{"type": "order.created", "total": 129.9}'""",
            "penstock send --ingest-url https://ingest.example.com --file orders.ndjson",
            "jq -c '.[]' orders.json | penstock send --pipe orders",
        )
    )(send)
    app.command(
        epilog=examples("penstock tail --pipe orders", "penstock tail --pipe orders --filter 'body.order.total > 100'")
    )(tail)
    app.command(
        epilog=examples(
            "penstock events --pipe orders --since 1h",
            "penstock events --pipe orders A-1001",
            """penstock events --pipe orders --where 'body.order.status == "paid"' --range 24h""",
        )
    )(events)
    app.command(epilog=examples("penstock explain 019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77"))(explain)
    app.command(
        epilog=examples(
            "penstock listen --pipe orders --to http://localhost:3000/webhooks",
            "penstock listen --pipe orders --source shop --to http://localhost:3000/webhooks --since 10m",
        )
    )(listen)


def send(
    event: Annotated[list[str] | None, typer.Argument(help="Events as JSON. Default: JSON lines from stdin.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="JSON lines, or one document in a .json file.")
    ] = None,
    key: Annotated[str, typer.Option(envvar="PENSTOCK_KEY", help="API key of the source.")] = "",
    ingest_url: Annotated[
        str, typer.Option(envvar="PENSTOCK_INGEST_URL", help="URL of ingest. Default: of the pipe.")
    ] = "",
    pipe: PipeOption = "",
    as_json: JsonOption = False,
    profile: ProfileOption = "",
) -> None:
    """Send events with the API key of a source and print the id of each.

    Events are sent again after 429, 503 or no response. Exits with 1 if an event was refused; the others are stored.
    """
    from penstock_cli.run_send import run_send

    run_send(event or [], file, key, ingest_url, pipe, as_json=as_json, profile=profile)


def tail(
    pipe: PipeOption,
    condition: Annotated[str, typer.Option("--filter", help="Condition over `body` and `meta`.")] = "",
    as_json: JsonOption = False,
    profile: ProfileOption = "",
) -> None:
    """Follow the copies of the pipe's peek steps until Ctrl-C."""
    from penstock_cli.run_tail import run_tail

    run_tail(pipe, condition, as_json=as_json, profile=profile)


def events(
    pipe: PipeOption,
    query: Annotated[str, typer.Argument(help="Id of a message, a position, or your own id.")] = "",
    where: Annotated[str, typer.Option(help="Condition over `body` and `meta`.")] = "",
    span: Annotated[str, typer.Option("--range", help="Range of --where: 1h, 6h, 24h, ...")] = "",
    since: Annotated[str, typer.Option(help="First event of the list: a duration or a time.")] = "10m",
    source: SourceOption = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Events, at most.")] = 50,
    as_json: JsonOption = False,
    profile: ProfileOption = "",
) -> None:
    """List the newest events of a pipe, or search by id or by a condition over the body."""
    from penstock_cli.run_events import EventQuery, run_events

    run_events(EventQuery(pipe, query, where, span, since, source, limit), as_json=as_json, profile=profile)


def explain(
    message: Annotated[str, typer.Argument(help="Id of a message, a position, or your own id.")],
    pipe: PipeOption = "",
    tenant: TenantOption = "",
    as_json: JsonOption = False,
    profile: ProfileOption = "",
) -> None:
    """Explain the journey of one message: the stages, the rules, each destination and its attempts."""
    from penstock_cli.run_events import run_explain

    run_explain(message, pipe, tenant, as_json=as_json, profile=profile)


def listen(
    pipe: PipeOption,
    to: Annotated[str, typer.Option("--to", help="URL of your local server.")],
    source: SourceOption = "",
    since: Annotated[str, typer.Option(help="At the first start: a duration or a time. Default: now.")] = "",
    reset: Annotated[bool, typer.Option("--reset", help="Ignore the stored position.")] = False,
    secret: Annotated[
        str, typer.Option(envvar="PENSTOCK_SIGNING_SECRET", help="Sign like the real delivery, `whsec_...`.")
    ] = "",
    as_json: JsonOption = False,
    profile: ProfileOption = "",
) -> None:
    """Forward the events of a pipe to a local server, at least once, and continue after the last one.

    An event is sent again until the server returns 2xx. The position is stored after each, so the same command
    continues there. Events are those that ingest stored, before any step; masked fields are masked.
    """
    from penstock_cli.run_listen import ListenRequest, run_listen

    run_listen(ListenRequest(pipe, to, source, since, secret), reset=reset, as_json=as_json, profile=profile)
