from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.backfill_out import BackfillOut
from typing import cast


def _get_kwargs(
    pipe: str,
    backfill: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/backfills/{backfill}/".format(
            pipe=quote(str(pipe), safe=""),
            backfill=quote(str(backfill), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> BackfillOut | None:
    if response.status_code == 200:
        response_200 = BackfillOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[BackfillOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[BackfillOut]:
    """Return a backfill: what it waits for, why it was not started, or its replay.

    Args:
        pipe (str):
        backfill (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BackfillOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        backfill=backfill,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
) -> BackfillOut | None:
    """Return a backfill: what it waits for, why it was not started, or its replay.

    Args:
        pipe (str):
        backfill (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BackfillOut
    """

    return sync_detailed(
        pipe=pipe,
        backfill=backfill,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[BackfillOut]:
    """Return a backfill: what it waits for, why it was not started, or its replay.

    Args:
        pipe (str):
        backfill (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BackfillOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        backfill=backfill,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
) -> BackfillOut | None:
    """Return a backfill: what it waits for, why it was not started, or its replay.

    Args:
        pipe (str):
        backfill (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BackfillOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            backfill=backfill,
            client=client,
        )
    ).parsed
