"""`penstock send`."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from penstock_cli.errors import CliError
from penstock_cli.options import connect
from penstock_cli.output import note, write, write_json
from penstock_cli.sender import EventBatches, events_of_document, lines_of

EVENTS_PATH: Final = "/v1/events"


def run_send(
    events: Sequence[str], file: Path | None, key: str, ingest_url: str, pipe: str, *, as_json: bool, profile: str
) -> None:
    """Send the events and print their ids. Raises CliError, also if an event was refused."""
    if not key:
        raise CliError("needs the API key of a source", hint="Create one on the pipe's page, and set PENSTOCK_KEY.")
    url = _endpoint(ingest_url, pipe, profile)
    refused = sent = 0
    with ExitStack() as stack:
        for one in EventBatches(url, key).send(_read(events, file, stack)):
            sent += 1
            refused += not one.id
            if as_json:
                write_json(one._asdict(), indent=None)
            elif one.id:
                write(one.id)
            if not one.id:
                note(f"event {one.number}: {f'{one.status} ' if one.status else ''}{one.code}: {one.detail}")
    if refused:
        raise CliError(f"{refused} of {sent} events were not accepted", hint="Correct them and send only these again.")
    if not sent:
        raise CliError("there are no events", hint="Give one as an argument, name a --file, or write lines to stdin.")


def _endpoint(ingest_url: str, pipe: str, profile: str) -> str:
    if ingest_url:
        url = ingest_url.rstrip("/")
        return url if url.endswith(EVENTS_PATH) else url + EVENTS_PATH
    if not pipe:
        raise CliError("needs the URL of ingest", hint="Set PENSTOCK_INGEST_URL, or name the --pipe.")
    from penstock_cli.tenants import pipe_of
    from penstock_client.api.operations import list_sources

    connection = connect(profile)
    sources = connection.call(list_sources.sync_detailed, pipe_of(connection, pipe).id)
    return str(sources[0].url)


def _read(events: Sequence[str], file: Path | None, stack: ExitStack) -> Iterable[bytes]:
    if events:
        return [one.encode() for one in events]
    if file is None or str(file) == "-":
        return lines_of(sys.stdin)
    try:
        if file.suffix == ".json":
            return events_of_document(file.read_text(encoding="utf-8"))
        return lines_of(stack.enter_context(file.open(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as exc:
        raise CliError(f"{file}: cannot be read: {exc}") from exc
