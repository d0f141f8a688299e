from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.one_tenant_usage_out import OneTenantUsageOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    *,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["range"] = range_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/tenants/{tenant}/usage/".format(
            tenant=quote(str(tenant), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> OneTenantUsageOut | None:
    if response.status_code == 200:
        response_200 = OneTenantUsageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[OneTenantUsageOut]:
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
    range_: str | Unset = UNSET,
) -> Response[OneTenantUsageOut]:
    """Return the usage of a tenant's pipes, by day and by pipe. `limit` applies to the pipes.

    Args:
        tenant (str):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[OneTenantUsageOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        limit=limit,
        range_=range_,
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
    range_: str | Unset = UNSET,
) -> OneTenantUsageOut | None:
    """Return the usage of a tenant's pipes, by day and by pipe. `limit` applies to the pipes.

    Args:
        tenant (str):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        OneTenantUsageOut
    """

    return sync_detailed(
        tenant=tenant,
        client=client,
        limit=limit,
        range_=range_,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> Response[OneTenantUsageOut]:
    """Return the usage of a tenant's pipes, by day and by pipe. `limit` applies to the pipes.

    Args:
        tenant (str):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[OneTenantUsageOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        limit=limit,
        range_=range_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    range_: str | Unset = UNSET,
) -> OneTenantUsageOut | None:
    """Return the usage of a tenant's pipes, by day and by pipe. `limit` applies to the pipes.

    Args:
        tenant (str):
        limit (int | Unset):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        OneTenantUsageOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            limit=limit,
            range_=range_,
        )
    ).parsed
