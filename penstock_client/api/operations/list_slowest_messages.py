from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.slowest_out import SlowestOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    pipe: str,
    *,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    stage: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["range"] = range_

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    params["stage"] = stage

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/slowest-messages/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> SlowestOut | None:
    if response.status_code == 200:
        response_200 = SlowestOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[SlowestOut]:
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
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    stage: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[SlowestOut]:
    """List the slowest messages of a time range, the slowest first, from their recorded attempts.

    Every failed attempt is recorded, and a sample of the successful ones. For the stage `transmit` the
    duration is
    the time of the requests, for `retry wait` the time between the attempts. For any other stage it is
    that of the
    whole delivery, because the time in the stage is kept as a distribution and not for each message.

    Args:
        pipe (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        stage (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SlowestOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        range_=range_,
        since=since,
        stage=stage,
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
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    stage: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> SlowestOut | None:
    """List the slowest messages of a time range, the slowest first, from their recorded attempts.

    Every failed attempt is recorded, and a sample of the successful ones. For the stage `transmit` the
    duration is
    the time of the requests, for `retry wait` the time between the attempts. For any other stage it is
    that of the
    whole delivery, because the time in the stage is kept as a distribution and not for each message.

    Args:
        pipe (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        stage (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SlowestOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        range_=range_,
        since=since,
        stage=stage,
        until=until,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    stage: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[SlowestOut]:
    """List the slowest messages of a time range, the slowest first, from their recorded attempts.

    Every failed attempt is recorded, and a sample of the successful ones. For the stage `transmit` the
    duration is
    the time of the requests, for `retry wait` the time between the attempts. For any other stage it is
    that of the
    whole delivery, because the time in the stage is kept as a distribution and not for each message.

    Args:
        pipe (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        stage (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SlowestOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        range_=range_,
        since=since,
        stage=stage,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    stage: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> SlowestOut | None:
    """List the slowest messages of a time range, the slowest first, from their recorded attempts.

    Every failed attempt is recorded, and a sample of the successful ones. For the stage `transmit` the
    duration is
    the time of the requests, for `retry wait` the time between the attempts. For any other stage it is
    that of the
    whole delivery, because the time in the stage is kept as a distribution and not for each message.

    Args:
        pipe (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        stage (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SlowestOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            range_=range_,
            since=since,
            stage=stage,
            until=until,
        )
    ).parsed
