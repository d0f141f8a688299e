from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.backfill_page_out import BackfillPageOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/backfills/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> BackfillPageOut | None:
    if response.status_code == 200:
        response_200 = BackfillPageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[BackfillPageOut]:
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
) -> Response[BackfillPageOut]:
    """List the backfills of a pipe: earlier events for new destinations with `from`, newest first.

    Each is delivered by one replay, which is paused, resumed and aborted like any other. Until it has a
    replay, it
    can be cancelled.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BackfillPageOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cursor=cursor,
        limit=limit,
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
) -> BackfillPageOut | None:
    """List the backfills of a pipe: earlier events for new destinations with `from`, newest first.

    Each is delivered by one replay, which is paused, resumed and aborted like any other. Until it has a
    replay, it
    can be cancelled.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BackfillPageOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        cursor=cursor,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[BackfillPageOut]:
    """List the backfills of a pipe: earlier events for new destinations with `from`, newest first.

    Each is delivered by one replay, which is paused, resumed and aborted like any other. Until it has a
    replay, it
    can be cancelled.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BackfillPageOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        cursor=cursor,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> BackfillPageOut | None:
    """List the backfills of a pipe: earlier events for new destinations with `from`, newest first.

    Each is delivered by one replay, which is paused, resumed and aborted like any other. Until it has a
    replay, it
    can be cancelled.

    Args:
        pipe (str):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BackfillPageOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            cursor=cursor,
            limit=limit,
        )
    ).parsed
