from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.attempt_page_out import AttemptPageOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    pipe: str,
    *,
    cause: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    outcome: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    status: int | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cause"] = cause

    params["cursor"] = cursor

    params["destination"] = destination

    params["limit"] = limit

    params["message_id"] = message_id

    params["outcome"] = outcome

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    params["status"] = status

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/attempts/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AttemptPageOut | None:
    if response.status_code == 200:
        response_200 = AttemptPageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[AttemptPageOut]:
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
    cause: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    outcome: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    status: int | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[AttemptPageOut]:
    """List a pipe's delivery attempts, newest first: every failed one, and a sample of the successful
    ones.

    Args:
        pipe (str):
        cause (str | Unset):
        cursor (str | Unset):
        destination (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        outcome (str | Unset):
        since (datetime.datetime | Unset):
        status (int | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AttemptPageOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cause=cause,
        cursor=cursor,
        destination=destination,
        limit=limit,
        message_id=message_id,
        outcome=outcome,
        since=since,
        status=status,
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
    cause: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    outcome: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    status: int | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> AttemptPageOut | None:
    """List a pipe's delivery attempts, newest first: every failed one, and a sample of the successful
    ones.

    Args:
        pipe (str):
        cause (str | Unset):
        cursor (str | Unset):
        destination (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        outcome (str | Unset):
        since (datetime.datetime | Unset):
        status (int | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AttemptPageOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        cause=cause,
        cursor=cursor,
        destination=destination,
        limit=limit,
        message_id=message_id,
        outcome=outcome,
        since=since,
        status=status,
        until=until,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cause: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    outcome: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    status: int | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[AttemptPageOut]:
    """List a pipe's delivery attempts, newest first: every failed one, and a sample of the successful
    ones.

    Args:
        pipe (str):
        cause (str | Unset):
        cursor (str | Unset):
        destination (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        outcome (str | Unset):
        since (datetime.datetime | Unset):
        status (int | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AttemptPageOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cause=cause,
        cursor=cursor,
        destination=destination,
        limit=limit,
        message_id=message_id,
        outcome=outcome,
        since=since,
        status=status,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cause: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    destination: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    message_id: str | Unset = UNSET,
    outcome: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    status: int | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> AttemptPageOut | None:
    """List a pipe's delivery attempts, newest first: every failed one, and a sample of the successful
    ones.

    Args:
        pipe (str):
        cause (str | Unset):
        cursor (str | Unset):
        destination (str | Unset):
        limit (int | Unset):
        message_id (str | Unset):
        outcome (str | Unset):
        since (datetime.datetime | Unset):
        status (int | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AttemptPageOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            cause=cause,
            cursor=cursor,
            destination=destination,
            limit=limit,
            message_id=message_id,
            outcome=outcome,
            since=since,
            status=status,
            until=until,
        )
    ).parsed
