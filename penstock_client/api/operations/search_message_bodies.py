from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.body_search_out import BodySearchOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    pipe: str,
    *,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    where: str,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["limit"] = limit

    params["range"] = range_

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params["where"] = where

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/messages/search/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> BodySearchOut | None:
    if response.status_code == 200:
        response_200 = BodySearchOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[BodySearchOut]:
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
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    where: str,
) -> Response[BodySearchOut]:
    """Search a pipe's events of a time range by a condition over their bodies, newest minute first.

    There is no index: the events are read from Kafka, at most 20,000 of them in one request and for
    about three
    seconds. `left` is the number of events of the range that are not searched yet; send `cursor` to
    continue.
    Fields that the pipe masks are compared as masked. A user may run one search at a time, and 20 per
    minute.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        where (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BodySearchOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cursor=cursor,
        limit=limit,
        range_=range_,
        since=since,
        until=until,
        where=where,
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
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    where: str,
) -> BodySearchOut | None:
    """Search a pipe's events of a time range by a condition over their bodies, newest minute first.

    There is no index: the events are read from Kafka, at most 20,000 of them in one request and for
    about three
    seconds. `left` is the number of events of the range that are not searched yet; send `cursor` to
    continue.
    Fields that the pipe masks are compared as masked. A user may run one search at a time, and 20 per
    minute.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        where (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BodySearchOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        cursor=cursor,
        limit=limit,
        range_=range_,
        since=since,
        until=until,
        where=where,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    where: str,
) -> Response[BodySearchOut]:
    """Search a pipe's events of a time range by a condition over their bodies, newest minute first.

    There is no index: the events are read from Kafka, at most 20,000 of them in one request and for
    about three
    seconds. `left` is the number of events of the range that are not searched yet; send `cursor` to
    continue.
    Fields that the pipe masks are compared as masked. A user may run one search at a time, and 20 per
    minute.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        where (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BodySearchOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cursor=cursor,
        limit=limit,
        range_=range_,
        since=since,
        until=until,
        where=where,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    where: str,
) -> BodySearchOut | None:
    """Search a pipe's events of a time range by a condition over their bodies, newest minute first.

    There is no index: the events are read from Kafka, at most 20,000 of them in one request and for
    about three
    seconds. `left` is the number of events of the range that are not searched yet; send `cursor` to
    continue.
    Fields that the pipe masks are compared as masked. A user may run one search at a time, and 20 per
    minute.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        where (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BodySearchOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            cursor=cursor,
            limit=limit,
            range_=range_,
            since=since,
            until=until,
            where=where,
        )
    ).parsed
