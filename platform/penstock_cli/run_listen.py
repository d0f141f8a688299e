"""`penstock listen`: the arguments become a listener, and its reports become lines."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from penstock_cli.errors import CliError
from penstock_cli.listening import Attempt, Listener, ListenPosition, ListenReport, LocalServer, position_file
from penstock_cli.options import connect
from penstock_cli.output import note, write, write_json
from penstock_cli.profiles import config_folder
from penstock_cli.tenants import pipe_of
from penstock_cli.times import time_from


class ListenRequest(NamedTuple):
    """Arguments of `penstock listen`."""

    pipe: str
    to: str
    source: str
    since: str
    secret: str


def run_listen(request: ListenRequest, *, reset: bool, as_json: bool, profile: str) -> None:
    """Forward events until the process is ended. Raises CliError."""
    if not request.to.startswith(("http://", "https://")):
        raise CliError(f"{request.to}: needs a URL", hint="For example --to http://localhost:3000/webhooks.")
    connection = connect(profile)
    pipe = pipe_of(connection, request.pipe)
    path = position_file(config_folder(), connection.profile.url, pipe.id, request.source, request.to)
    if reset:
        path.unlink(missing_ok=True)
    position = ListenPosition(path)
    if not position.is_new:
        note(f"continuing after the stored position in {path}")
    elif request.since:
        position.start(time_from(request.since, datetime.now(UTC)))
    note(f"forwarding events of {pipe.name} to {request.to}; Ctrl-C ends it")
    report = ListenReport(_json_line if as_json else _line, note)
    server = LocalServer(request.to, request.secret)
    Listener(connection, server, position, report, pipe=pipe.id, source=request.source).run()


def _line(event: Any, attempt: Attempt, number: int) -> None:
    answer = str(attempt.status) if attempt.status else f"no response ({attempt.error})"
    again = "" if attempt.is_delivered else "; sent again soon"
    repeat = f", attempt {number}" if number > 1 else ""
    write(f"{datetime.now(UTC):%H:%M:%S}  {event.id}  {answer}  {attempt.took_ms:.0f} ms{repeat}{again}")


def _json_line(event: Any, attempt: Attempt, number: int) -> None:
    found = {"id": event.id, "source": event.source, "attempt": number, "delivered": attempt.is_delivered}
    write_json(
        found | {"status": attempt.status, "took_ms": round(attempt.took_ms, 1), "error": attempt.error}, indent=None
    )
