"""Command `generate`: typed clients for event types."""

from pathlib import Path
from typing import Annotated

import typer

from penstock_cli.options import ProfileOption, TenantOption, examples


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=examples(
            "penstock generate --lang python --out clients --subject order=orders-value",
            "penstock generate --lang go --out clients --source pipe_.../shop --check",
        )
    )(generate)


def generate(
    lang: Annotated[str, typer.Option(help="python, typescript, java or go.")],
    out: Annotated[Path, typer.Option(help="Folder to write to; other files in it are kept.")],
    package: Annotated[str, typer.Option(help="Name of the package or module.")] = "",
    source: Annotated[
        list[str] | None, typer.Option(metavar="PIPE/SOURCE", help="All event types of a source; repeatable.")
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TYPE=]SUBJECT[@VERSION]",
            help="An event type and its subject; by default its name is the subject's, and its version the newest one.",
        ),
    ] = None,
    schema: Annotated[
        list[str] | None, typer.Option(metavar="TYPE=FILE", help="An event type and its .avsc or .json file.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if the folder is not up to date.")
    ] = False,
    tenant: TenantOption = "",
    profile: ProfileOption = "",
) -> None:
    """Write a typed client for event types."""
    from penstock_cli.generate import GenerateRequest, run_generate
    from penstock_cli.output import write

    request = GenerateRequest(lang, out, package, source or [], subject or [], schema or [], tenant, check=check)
    write(run_generate(request, profile))
