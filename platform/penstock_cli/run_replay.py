"""`penstock replay`: a rehearsal first, then the replay itself."""

import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from penstock_cli.connection import Connection
from penstock_cli.errors import CliError
from penstock_cli.options import confirmed, connect
from penstock_cli.output import note, write, write_json
from penstock_cli.tenants import pipe_of
from penstock_cli.times import time_from
from penstock_client.api.operations import get_replay, start_replay
from penstock_client.models.replay_in import ReplayIn

POLL_S: Final = 1.0
_ENDED: Final = ("done", "failed", "aborted")


@dataclass(frozen=True)
class ReplaySelection:
    """Selection of a replay, as its options name it."""

    since: str
    until: str
    revision: int | None
    destinations: list[str]
    where: str
    keys: list[str]
    ids: list[str]
    revisions: list[int]
    rate_per_s: float | None


def run_replay(
    pipe: str, options: ReplaySelection, *, rehearsal: bool, wait: bool, yes: bool, as_json: bool, profile: str
) -> None:
    """Rehearse, ask, and start the replay. Raises CliError."""
    connection = connect(profile)
    row = pipe_of(connection, pipe)
    body = replay_body(options, datetime.now(UTC))
    counts = _ended(connection, row.id, _start(connection, row.id, body | {"rehearsal": True}), "rehearsal")
    if not as_json:
        _show(counts)
    if rehearsal:
        if as_json:
            write_json(counts)
        return
    if not counts.asked:
        raise CliError("no event of the range is selected", hint="Widen the range or the condition.")
    confirmed(f"Send these messages to {', '.join(counts.destinations)}?", yes=yes)
    replay = _start(connection, row.id, body)
    note(f"replay {replay.id} started")
    if wait:
        replay = _ended(connection, row.id, replay, "replay")
    if as_json:
        write_json(replay)
    elif wait:
        _show(replay)
    else:
        write(replay.id)


def replay_body(options: ReplaySelection, now: datetime) -> dict[str, Any]:
    """Return the body of the API for these options. Pure. Raises CliError for a text that is not a time."""
    found = asdict(options) | {
        "since": time_from(options.since, now).isoformat(),
        "until": time_from(options.until, now).isoformat(),
    }
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def _start(connection: Connection, pipe: str, body: dict[str, Any]) -> Any:
    return connection.call(start_replay.sync_detailed, pipe, body=ReplayIn.from_dict(body))


def _ended(connection: Connection, pipe: str, replay: Any, kind: str) -> Any:
    """Wait until a replay has ended and return it. Raises CliError if it failed."""
    shown = ""
    while str(replay.state) not in _ENDED:
        share = f" {replay.share:.0%}" if replay.share is not None else ""
        line = f"{kind} {replay.state}{share}{f': {replay.error}' if replay.error else ''}"
        if line != shown:
            note(line)
        shown = line
        time.sleep(POLL_S)
        replay = connection.call(get_replay.sync_detailed, pipe, replay.id)
    if str(replay.state) != "done":
        raise CliError(f"the {kind} {replay.id} is {replay.state}: {replay.error or 'no reason is known'}")
    return replay


def _show(replay: Any) -> None:
    units = replay.units.to_dict()
    write(f"{replay.asked} events selected, {replay.filtered} ended on purpose, {replay.failed} failed in a step")
    for name in replay.destinations:
        write(f"{name}: {units.get(name, 0)} messages")
