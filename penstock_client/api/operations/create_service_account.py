from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.service_account_in import ServiceAccountIn
from ...models.service_account_out import ServiceAccountOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    *,
    body: ServiceAccountIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/tenants/{tenant}/service-accounts/".format(
            tenant=quote(str(tenant), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ServiceAccountOut | None:
    if response.status_code == 201:
        response_201 = ServiceAccountOut.from_dict(response.json())

        return response_201

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
    *,
    client: AuthenticatedClient | Client,
    body: ServiceAccountIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[ServiceAccountOut]:
    """Create a service account: a user for a program, which never signs in. Then create a token of it.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ServiceAccountIn): Service account to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ServiceAccountOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    body: ServiceAccountIn,
    idempotency_key: str | Unset = UNSET,
) -> ServiceAccountOut | None:
    """Create a service account: a user for a program, which never signs in. Then create a token of it.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ServiceAccountIn): Service account to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ServiceAccountOut
    """

    return sync_detailed(
        tenant=tenant,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    body: ServiceAccountIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[ServiceAccountOut]:
    """Create a service account: a user for a program, which never signs in. Then create a token of it.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ServiceAccountIn): Service account to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ServiceAccountOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    body: ServiceAccountIn,
    idempotency_key: str | Unset = UNSET,
) -> ServiceAccountOut | None:
    """Create a service account: a user for a program, which never signs in. Then create a token of it.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ServiceAccountIn): Service account to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ServiceAccountOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
