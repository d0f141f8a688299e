"""`penstock tail`: the live tail of a pipe as lines, connected again when the stream ends."""

import json
import time
from typing import Final

import httpx

from penstock_cli.connection import Connection, problem_of, retry_after_s
from penstock_cli.listening import backoff_s
from penstock_cli.options import connect
from penstock_cli.output import note, one_line, write, write_json
from penstock_cli.sse import ServerSentEvent, server_sent_events
from penstock_cli.tenants import pipe_of

STREAM_TIMEOUT: Final = httpx.Timeout(30.0)  # a `standing` event arrives each second


def run_tail(pipe: str, condition: str, *, as_json: bool, profile: str) -> None:
    """Print copies until the process is ended. Raises CliError if the API refuses the request."""
    connection = connect(profile)
    row = pipe_of(connection, pipe)
    note(f"following {row.name}; Ctrl-C ends it")
    cursor, waits = "", backoff_s()
    while True:
        try:
            before = cursor
            cursor = _follow(connection, row.id, condition, cursor, as_json=as_json)
            waits = waits if cursor == before else backoff_s()
        except httpx.TransportError as exc:
            wait_s = next(waits)
            note(f"connection lost: {exc or type(exc).__name__}; next try in {wait_s:g} s")
            time.sleep(wait_s)


def _follow(connection: Connection, pipe: str, condition: str, cursor: str, *, as_json: bool) -> str:
    """Print the events of one stream; return the cursor after them."""
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": cursor} if cursor else {})
    request = {"params": {"filter": condition} if condition else {}, "headers": headers, "timeout": STREAM_TIMEOUT}
    with connection.http().stream("GET", f"/api/v1/pipes/{pipe}/tail/", **request) as response:  # type: ignore[arg-type]
        if response.status_code in (429, 503):
            time.sleep(retry_after_s(response.headers, 2.0))
            return cursor
        if response.status_code != 200:
            raise problem_of(response.status_code, response.read())
        try:
            for event in server_sent_events(response.iter_lines()):
                cursor = event.id or cursor
                _show(event, as_json=as_json)
        except httpx.TransportError as exc:
            note(f"connection lost: {exc or type(exc).__name__}")
    return cursor


def _show(event: ServerSentEvent, *, as_json: bool) -> None:
    found = json.loads(event.data)
    if event.name == "copy":
        if as_json:
            write_json(found, indent=None)
        else:
            write(f"{found['at'][11:23]}  {found['message']}  {found['step']}  {one_line(found['body'], 200)}")
    elif event.name == "standing" and (found["left_out"] or found["missed"] or found["gap"]):
        gap = "; earlier copies are no longer kept" if found["gap"] else ""
        note(f"{found['left_out']} copies left out (over 20 per second), {found['missed']} missed{gap}")
    elif event.name == "refused":
        note(found["reason"])
