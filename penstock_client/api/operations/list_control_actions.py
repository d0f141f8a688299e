from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.control_action_page_out import ControlActionPageOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    cell: str | Unset = UNSET,
    controller: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cell"] = cell

    params["controller"] = controller

    params["cursor"] = cursor

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/staff/actions/",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ControlActionPageOut | None:
    if response.status_code == 200:
        response_200 = ControlActionPageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ControlActionPageOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    cell: str | Unset = UNSET,
    controller: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[ControlActionPageOut]:
    """List the changes of cells and pipes, and the refused changes, newest first. For staff.

    Args:
        cell (str | Unset):
        controller (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ControlActionPageOut]
    """

    kwargs = _get_kwargs(
        cell=cell,
        controller=controller,
        cursor=cursor,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    cell: str | Unset = UNSET,
    controller: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> ControlActionPageOut | None:
    """List the changes of cells and pipes, and the refused changes, newest first. For staff.

    Args:
        cell (str | Unset):
        controller (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ControlActionPageOut
    """

    return sync_detailed(
        client=client,
        cell=cell,
        controller=controller,
        cursor=cursor,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    cell: str | Unset = UNSET,
    controller: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[ControlActionPageOut]:
    """List the changes of cells and pipes, and the refused changes, newest first. For staff.

    Args:
        cell (str | Unset):
        controller (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ControlActionPageOut]
    """

    kwargs = _get_kwargs(
        cell=cell,
        controller=controller,
        cursor=cursor,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    cell: str | Unset = UNSET,
    controller: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> ControlActionPageOut | None:
    """List the changes of cells and pipes, and the refused changes, newest first. For staff.

    Args:
        cell (str | Unset):
        controller (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ControlActionPageOut
    """

    return (
        await asyncio_detailed(
            client=client,
            cell=cell,
            controller=controller,
            cursor=cursor,
            limit=limit,
        )
    ).parsed
