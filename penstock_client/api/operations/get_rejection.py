from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.rejection_detail_out import RejectionDetailOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    pipe: str,
    rejection: str,
    *,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["range"] = range_

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
        "url": "/api/v1/pipes/{pipe}/rejections/{rejection}/".format(
            pipe=quote(str(pipe), safe=""),
            rejection=quote(str(rejection), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> RejectionDetailOut | None:
    if response.status_code == 200:
        response_200 = RejectionDetailOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[RejectionDetailOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    rejection: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[RejectionDetailOut]:
    """Return one kind of rejected events with samples, and the version of the schema that would accept
    them.

    To accept them, register the proposal under the subject: the registry checks its compatibility.

    Args:
        pipe (str):
        rejection (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RejectionDetailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        rejection=rejection,
        range_=range_,
        since=since,
        until=until,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    rejection: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> RejectionDetailOut | None:
    """Return one kind of rejected events with samples, and the version of the schema that would accept
    them.

    To accept them, register the proposal under the subject: the registry checks its compatibility.

    Args:
        pipe (str):
        rejection (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RejectionDetailOut
    """

    return sync_detailed(
        pipe=pipe,
        rejection=rejection,
        client=client,
        range_=range_,
        since=since,
        until=until,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    rejection: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[RejectionDetailOut]:
    """Return one kind of rejected events with samples, and the version of the schema that would accept
    them.

    To accept them, register the proposal under the subject: the registry checks its compatibility.

    Args:
        pipe (str):
        rejection (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RejectionDetailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        rejection=rejection,
        range_=range_,
        since=since,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    rejection: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> RejectionDetailOut | None:
    """Return one kind of rejected events with samples, and the version of the schema that would accept
    them.

    To accept them, register the proposal under the subject: the registry checks its compatibility.

    Args:
        pipe (str):
        rejection (str):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RejectionDetailOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            rejection=rejection,
            client=client,
            range_=range_,
            since=since,
            until=until,
        )
    ).parsed
