from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.found_messages_out import FoundMessagesOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    *,
    limit: int | Unset = UNSET,
    q: str,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["q"] = q

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/tenants/{tenant}/messages/".format(
            tenant=quote(str(tenant), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> FoundMessagesOut | None:
    if response.status_code == 200:
        response_200 = FoundMessagesOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[FoundMessagesOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    q: str,
) -> Response[FoundMessagesOut]:
    """Search the messages of all pipes of a tenant by id, position or your own id, newest first.

    Args:
        tenant (str):
        limit (int | Unset):
        q (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FoundMessagesOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        limit=limit,
        q=q,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    q: str,
) -> FoundMessagesOut | None:
    """Search the messages of all pipes of a tenant by id, position or your own id, newest first.

    Args:
        tenant (str):
        limit (int | Unset):
        q (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FoundMessagesOut
    """

    return sync_detailed(
        tenant=tenant,
        client=client,
        limit=limit,
        q=q,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    q: str,
) -> Response[FoundMessagesOut]:
    """Search the messages of all pipes of a tenant by id, position or your own id, newest first.

    Args:
        tenant (str):
        limit (int | Unset):
        q (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FoundMessagesOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        limit=limit,
        q=q,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    q: str,
) -> FoundMessagesOut | None:
    """Search the messages of all pipes of a tenant by id, position or your own id, newest first.

    Args:
        tenant (str):
        limit (int | Unset):
        q (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FoundMessagesOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            limit=limit,
            q=q,
        )
    ).parsed
