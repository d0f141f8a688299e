from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.token_out import TokenOut
from typing import cast


def _get_kwargs(
    tenant: str,
    token: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/tenants/{tenant}/tokens/{token}/".format(
            tenant=quote(str(tenant), safe=""),
            token=quote(str(token), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> TokenOut | None:
    if response.status_code == 200:
        response_200 = TokenOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[TokenOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    tenant: str,
    token: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[TokenOut]:
    """Return one of your API tokens; as an owner, that of any user. A revoked one is returned, too.

    Args:
        tenant (str):
        token (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TokenOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        token=token,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    token: str,
    *,
    client: AuthenticatedClient | Client,
) -> TokenOut | None:
    """Return one of your API tokens; as an owner, that of any user. A revoked one is returned, too.

    Args:
        tenant (str):
        token (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TokenOut
    """

    return sync_detailed(
        tenant=tenant,
        token=token,
        client=client,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    token: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[TokenOut]:
    """Return one of your API tokens; as an owner, that of any user. A revoked one is returned, too.

    Args:
        tenant (str):
        token (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TokenOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        token=token,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    token: str,
    *,
    client: AuthenticatedClient | Client,
) -> TokenOut | None:
    """Return one of your API tokens; as an owner, that of any user. A revoked one is returned, too.

    Args:
        tenant (str):
        token (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TokenOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            token=token,
            client=client,
        )
    ).parsed
