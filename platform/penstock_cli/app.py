"""The application: all commands of `penstock`. Nothing that takes long is imported here, so that `--help` is quick."""

import typer

from penstock_cli.commands import account, box, clients, events, pipes

HELP = "Command line of Penstock: define pipes, send and follow events, and see what happened to each."

app = typer.Typer(
    name="penstock", help=HELP, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True
)
for part in (account, events, pipes, clients, box):
    part.register(app)
