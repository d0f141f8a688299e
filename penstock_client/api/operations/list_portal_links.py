from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.portal_link_out import PortalLinkOut
from typing import cast


def _get_kwargs(
    pipe: str,
    name: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/destinations/{name}/portal-links/".format(
            pipe=quote(str(pipe), safe=""),
            name=quote(str(name), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> list[PortalLinkOut] | None:
    if response.status_code == 200:
        response_200 = []
        _response_200 = response.json()
        for response_200_item_data in _response_200:
            response_200_item = PortalLinkOut.from_dict(response_200_item_data)

            response_200.append(response_200_item)

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[list[PortalLinkOut]]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[list[PortalLinkOut]]:
    """List the newest 100 open portal links of a destination.

    Args:
        pipe (str):
        name (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[list[PortalLinkOut]]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
) -> list[PortalLinkOut] | None:
    """List the newest 100 open portal links of a destination.

    Args:
        pipe (str):
        name (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        list[PortalLinkOut]
    """

    return sync_detailed(
        pipe=pipe,
        name=name,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[list[PortalLinkOut]]:
    """List the newest 100 open portal links of a destination.

    Args:
        pipe (str):
        name (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[list[PortalLinkOut]]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
) -> list[PortalLinkOut] | None:
    """List the newest 100 open portal links of a destination.

    Args:
        pipe (str):
        name (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        list[PortalLinkOut]
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            name=name,
            client=client,
        )
    ).parsed
