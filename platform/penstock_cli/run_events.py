"""`penstock events` and `penstock explain`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from penstock_cli.connection import Connection
from penstock_cli.errors import CliError
from penstock_cli.journey_words import journey_words
from penstock_cli.options import connect
from penstock_cli.output import note, one_line, write, write_columns, write_json
from penstock_cli.tenants import pipe_of, tenant_id
from penstock_cli.times import time_from
from penstock_client.api.operations import (
    get_message,
    list_events,
    search_message_bodies,
    search_messages,
    search_tenant_messages,
)
from penstock_client.types import UNSET

_FOUND: Final = ("ACCEPTED", "ID", "POSITION", "STATE")


class EventQuery(NamedTuple):
    """Arguments of `penstock events`."""

    pipe: str
    query: str
    where: str
    span: str
    since: str
    source: str
    limit: int


def run_events(query: EventQuery, *, as_json: bool, profile: str) -> None:
    """Print the events of a list or a search. Raises CliError."""
    if query.query and query.where:
        raise CliError("takes an id or --where, not both")
    connection = connect(profile)
    pipe = pipe_of(connection, query.pipe).id
    is_search = bool(query.query or query.where)
    found = list(islice(_search(connection, pipe, query) if is_search else _log(connection, pipe, query), query.limit))
    if as_json:
        write_json(found)
    elif not found:
        note("no events found; --since, --range or --limit may widen the search")
    elif is_search:
        write_columns(_FOUND, ((_time(one.accepted_at), one.message_id, one.position, one.state) for one in found))
    else:
        head = ("ACCEPTED", "ID", "SOURCE", "BODY")
        write_columns(
            head, ((_time(one.accepted_at), one.id, one.source, one_line(one.body or "***")) for one in found)
        )


def run_explain(message: str, pipe: str, tenant: str, *, as_json: bool, profile: str) -> None:
    """Print the journey of a message. Raises CliError if there is none of this name."""
    connection = connect(profile)
    if pipe:
        answer = connection.call(
            search_messages.sync_detailed, pipe_of(connection, pipe, tenant).id, q=message, limit=1
        )
    else:
        answer = connection.call(
            search_tenant_messages.sync_detailed, tenant_id(connection, tenant), q=message, limit=1
        )
    if not answer.results:
        raise CliError(f"message `{message}` was not found", hint="It may be older than the retention time of the log.")
    found = answer.results[0]
    journey = connection.call(
        get_message.sync_detailed, found.pipe, found.position, child=found.child, minute=found.minute
    )
    if as_json:
        write_json(journey)
        return
    for line in journey_words(journey):
        write(line)


def _search(connection: Connection, pipe: str, query: EventQuery) -> Iterator[Any]:
    if query.query:
        yield from connection.call(
            search_messages.sync_detailed, pipe, q=query.query, limit=min(query.limit, 200)
        ).results
        return
    cursor: Any = UNSET
    while True:
        page = connection.call(
            search_message_bodies.sync_detailed,
            pipe,
            where=query.where,
            range_=query.span or UNSET,
            limit=min(query.limit, 200),
            cursor=cursor,
        )
        yield from page.results
        if not page.cursor:
            return
        note(f"{page.left} events of the range are not searched yet")
        cursor = page.cursor


def _log(connection: Connection, pipe: str, query: EventQuery) -> Iterator[Any]:
    since, cursor = time_from(query.since, datetime.now(UTC)), ""
    while True:
        page = connection.call(
            list_events.sync_detailed,
            pipe,
            after=cursor or UNSET,
            since=UNSET if cursor else since,
            source=query.source or UNSET,
            limit=min(query.limit, 500),
        )
        yield from page.results
        if not page.more:
            return
        cursor = page.cursor


def _time(moment: datetime | None) -> str:
    return moment.strftime("%m-%d %H:%M:%S") if moment else "-"
