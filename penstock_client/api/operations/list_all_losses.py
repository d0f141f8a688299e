from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.all_losses_out import AllLossesOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    before: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["before"] = before

    params["limit"] = limit

    params["range"] = range_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/staff/losses/",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AllLossesOut | None:
    if response.status_code == 200:
        response_200 = AllLossesOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[AllLossesOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    before: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> Response[AllLossesOut]:
    """List the sealed minutes of all tenants that lost messages, newest first, with the loss by node. For
    staff.

    Args:
        before (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AllLossesOut]
    """

    kwargs = _get_kwargs(
        before=before,
        limit=limit,
        range_=range_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    before: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> AllLossesOut | None:
    """List the sealed minutes of all tenants that lost messages, newest first, with the loss by node. For
    staff.

    Args:
        before (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AllLossesOut
    """

    return sync_detailed(
        client=client,
        before=before,
        limit=limit,
        range_=range_,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    before: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> Response[AllLossesOut]:
    """List the sealed minutes of all tenants that lost messages, newest first, with the loss by node. For
    staff.

    Args:
        before (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AllLossesOut]
    """

    kwargs = _get_kwargs(
        before=before,
        limit=limit,
        range_=range_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    before: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> AllLossesOut | None:
    """List the sealed minutes of all tenants that lost messages, newest first, with the loss by node. For
    staff.

    Args:
        before (str | Unset):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AllLossesOut
    """

    return (
        await asyncio_detailed(
            client=client,
            before=before,
            limit=limit,
            range_=range_,
        )
    ).parsed
