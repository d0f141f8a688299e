from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.patched_service_account_change_in import PatchedServiceAccountChangeIn
from ...models.service_account_out import ServiceAccountOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    account: str,
    *,
    body: PatchedServiceAccountChangeIn | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/tenants/{tenant}/service-accounts/{account}/".format(
            tenant=quote(str(tenant), safe=""),
            account=quote(str(account), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
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
    body: PatchedServiceAccountChangeIn | Unset = UNSET,
) -> Response[ServiceAccountOut]:
    """Set the role of a service account, or disable it: its tokens are refused while `is_active` is false.

    Args:
        tenant (str):
        account (str):
        body (PatchedServiceAccountChangeIn | Unset): Changes of a service account. An omitted
            field is unchanged.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ServiceAccountOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        account=account,
        body=body,
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
    body: PatchedServiceAccountChangeIn | Unset = UNSET,
) -> ServiceAccountOut | None:
    """Set the role of a service account, or disable it: its tokens are refused while `is_active` is false.

    Args:
        tenant (str):
        account (str):
        body (PatchedServiceAccountChangeIn | Unset): Changes of a service account. An omitted
            field is unchanged.

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
        body=body,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    account: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedServiceAccountChangeIn | Unset = UNSET,
) -> Response[ServiceAccountOut]:
    """Set the role of a service account, or disable it: its tokens are refused while `is_active` is false.

    Args:
        tenant (str):
        account (str):
        body (PatchedServiceAccountChangeIn | Unset): Changes of a service account. An omitted
            field is unchanged.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ServiceAccountOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        account=account,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    account: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedServiceAccountChangeIn | Unset = UNSET,
) -> ServiceAccountOut | None:
    """Set the role of a service account, or disable it: its tokens are refused while `is_active` is false.

    Args:
        tenant (str):
        account (str):
        body (PatchedServiceAccountChangeIn | Unset): Changes of a service account. An omitted
            field is unchanged.

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
            body=body,
        )
    ).parsed
