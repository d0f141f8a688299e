from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.held_page_out import HeldPageOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    pipe: str,
    *,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    key: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["destination"] = destination

    params["key"] = key

    params["limit"] = limit

    params["message_id"] = message_id

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/held-messages/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> HeldPageOut | None:
    if response.status_code == 200:
        response_200 = HeldPageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[HeldPageOut]:
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
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    key: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[HeldPageOut]:
    """List a pipe's held messages, newest first, up to the first thousand of each hour and destination.

    Args:
        pipe (str):
        cursor (str | Unset):
        destination (str | Unset):
        key (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[HeldPageOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cursor=cursor,
        destination=destination,
        key=key,
        limit=limit,
        message_id=message_id,
        since=since,
        until=until,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    key: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> HeldPageOut | None:
    """List a pipe's held messages, newest first, up to the first thousand of each hour and destination.

    Args:
        pipe (str):
        cursor (str | Unset):
        destination (str | Unset):
        key (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        HeldPageOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        cursor=cursor,
        destination=destination,
        key=key,
        limit=limit,
        message_id=message_id,
        since=since,
        until=until,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    key: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[HeldPageOut]:
    """List a pipe's held messages, newest first, up to the first thousand of each hour and destination.

    Args:
        pipe (str):
        cursor (str | Unset):
        destination (str | Unset):
        key (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[HeldPageOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cursor=cursor,
        destination=destination,
        key=key,
        limit=limit,
        message_id=message_id,
        since=since,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    key: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> HeldPageOut | None:
    """List a pipe's held messages, newest first, up to the first thousand of each hour and destination.

    Args:
        pipe (str):
        cursor (str | Unset):
        destination (str | Unset):
        key (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        HeldPageOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            cursor=cursor,
            destination=destination,
            key=key,
            limit=limit,
            message_id=message_id,
            since=since,
            until=until,
        )
    ).parsed
