"""Command `box`: Penstock itself, on this machine."""

from typing import Annotated

import typer

from penstock_cli.options import examples


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        context_settings={"ignore_unknown_options": True},
        epilog=examples("penstock box up --detach", "penstock box status", "penstock box demo", "penstock box down"),
    )(box)


def box(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="up [--detach], down, status, demo, run, manage, archive, backup, restore, secrets or env-example.",
        ),
    ] = None,
) -> None:
    """Run Penstock on this machine: services, pages, ingest and cells. Needs `penstock[box]` and a JDK 17."""
    from penstock_cli.run_box import run_box

    run_box(words or [])
