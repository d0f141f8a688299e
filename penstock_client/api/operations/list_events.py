from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.event_log_out import EventLogOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    pipe: str,
    *,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["after"] = after

    params["limit"] = limit

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    params["source"] = source

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/events/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> EventLogOut | None:
    if response.status_code == 200:
        response_200 = EventLogOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[EventLogOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
) -> Response[EventLogOut]:
    """List the events of a pipe in the order of the log, from a cursor on, as ingest stored them.

    The response does not wait for events: at the end of the log, ask again after a second. Bodies of
    one response
    have at most 4 MB and the read takes at most two seconds, so a response may be empty although `more`
    is true.
    Masked fields are masked. A user may send 120 of these requests per minute.

    Args:
        pipe (str):
        after (str | Unset):
        limit (int | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[EventLogOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        after=after,
        limit=limit,
        since=since,
        source=source,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
) -> EventLogOut | None:
    """List the events of a pipe in the order of the log, from a cursor on, as ingest stored them.

    The response does not wait for events: at the end of the log, ask again after a second. Bodies of
    one response
    have at most 4 MB and the read takes at most two seconds, so a response may be empty although `more`
    is true.
    Masked fields are masked. A user may send 120 of these requests per minute.

    Args:
        pipe (str):
        after (str | Unset):
        limit (int | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        EventLogOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        after=after,
        limit=limit,
        since=since,
        source=source,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
) -> Response[EventLogOut]:
    """List the events of a pipe in the order of the log, from a cursor on, as ingest stored them.

    The response does not wait for events: at the end of the log, ask again after a second. Bodies of
    one response
    have at most 4 MB and the read takes at most two seconds, so a response may be empty although `more`
    is true.
    Masked fields are masked. A user may send 120 of these requests per minute.

    Args:
        pipe (str):
        after (str | Unset):
        limit (int | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[EventLogOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        after=after,
        limit=limit,
        since=since,
        source=source,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
) -> EventLogOut | None:
    """List the events of a pipe in the order of the log, from a cursor on, as ingest stored them.

    The response does not wait for events: at the end of the log, ask again after a second. Bodies of
    one response
    have at most 4 MB and the read takes at most two seconds, so a response may be empty although `more`
    is true.
    Masked fields are masked. A user may send 120 of these requests per minute.

    Args:
        pipe (str):
        after (str | Unset):
        limit (int | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        EventLogOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            after=after,
            limit=limit,
            since=since,
            source=source,
        )
    ).parsed
