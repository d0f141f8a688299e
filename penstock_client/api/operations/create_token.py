from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.new_token_out import NewTokenOut
from ...models.token_in import TokenIn
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    *,
    body: TokenIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/tenants/{tenant}/tokens/".format(
            tenant=quote(str(tenant), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> NewTokenOut | None:
    if response.status_code == 201:
        response_201 = NewTokenOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[NewTokenOut]:
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
    body: TokenIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewTokenOut]:
    """Create an API token. The response contains its text, which cannot be read again.

    Each member creates tokens up to their own role. A request that is itself authenticated by a token
    needs the
    scope `admin`.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (TokenIn): API token to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewTokenOut]
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
    body: TokenIn,
    idempotency_key: str | Unset = UNSET,
) -> NewTokenOut | None:
    """Create an API token. The response contains its text, which cannot be read again.

    Each member creates tokens up to their own role. A request that is itself authenticated by a token
    needs the
    scope `admin`.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (TokenIn): API token to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewTokenOut
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
    body: TokenIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewTokenOut]:
    """Create an API token. The response contains its text, which cannot be read again.

    Each member creates tokens up to their own role. A request that is itself authenticated by a token
    needs the
    scope `admin`.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (TokenIn): API token to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewTokenOut]
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
    body: TokenIn,
    idempotency_key: str | Unset = UNSET,
) -> NewTokenOut | None:
    """Create an API token. The response contains its text, which cannot be read again.

    Each member creates tokens up to their own role. A request that is itself authenticated by a token
    needs the
    scope `admin`.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (TokenIn): API token to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewTokenOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
