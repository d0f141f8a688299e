from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.service_account_out import ServiceAccountOut
from typing import cast


def _get_kwargs(
    tenant: str,
    account: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/tenants/{tenant}/service-accounts/{account}/".format(
            tenant=quote(str(tenant), safe=""),
            account=quote(str(account), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ServiceAccountOut | None:
    if response.status_code == 200:
        response_200 = ServiceAccountOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ServiceAccountOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    tenant: str,
    account: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ServiceAccountOut]:
    """Return a service account.

    Args:
        tenant (str):
        account (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ServiceAccountOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        account=account,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    account: str,
    *,
    client: AuthenticatedClient | Client,
) -> ServiceAccountOut | None:
    """Return a service account.

    Args:
        tenant (str):
        account (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ServiceAccountOut
    """

    return sync_detailed(
        tenant=tenant,
        account=account,
        client=client,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    account: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ServiceAccountOut]:
    """Return a service account.

    Args:
        tenant (str):
        account (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ServiceAccountOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        account=account,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    account: str,
    *,
    client: AuthenticatedClient | Client,
) -> ServiceAccountOut | None:
    """Return a service account.

    Args:
        tenant (str):
        account (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ServiceAccountOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            account=account,
            client=client,
        )
    ).parsed
