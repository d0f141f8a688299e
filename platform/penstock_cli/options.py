"""Options that several commands share, and the examples below their help."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # at run time the import takes longer than `--help` may
    from penstock_cli.connection import Connection

JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON.")]
ProfileOption = Annotated[str, typer.Option("--profile", envvar="PENSTOCK_PROFILE", help="Stored profile to use.")]
TenantOption = Annotated[
    str, typer.Option("--tenant", help="Id or name of the tenant; needed only if there are several.")
]
PipeOption = Annotated[str, typer.Option("--pipe", "-p", help="Id or name of the pipe.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the changes.")]


def examples(*lines: str) -> str:
    """Return the examples of a command, as its help shows them."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def confirmed(question: str, *, yes: bool) -> None:
    """Ask for confirmation unless `yes`. Raises CliError if the answer is no, or if nobody can answer."""
    from penstock_cli.errors import CliError

    if yes:
        return
    try:
        if typer.confirm(question):
            return
    except typer.Abort:
        pass
    raise CliError("nothing was changed", hint="Use --yes to go on without a question.")


def connect(profile: str) -> "Connection":
    """Return the connection of a profile. Raises CliError."""
    from penstock_cli.connection import Connection
    from penstock_cli.profiles import profile_from

    return Connection(profile_from(profile))
