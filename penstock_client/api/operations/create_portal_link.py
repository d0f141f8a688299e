from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.new_portal_link_out import NewPortalLinkOut
from ...models.portal_link_in import PortalLinkIn
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    name: str,
    *,
    body: PortalLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/destinations/{name}/portal-links/".format(
            pipe=quote(str(pipe), safe=""),
            name=quote(str(name), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> NewPortalLinkOut | None:
    if response.status_code == 201:
        response_201 = NewPortalLinkOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[NewPortalLinkOut]:
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
    body: PortalLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewPortalLinkOut]:
    """Create a link with which a customer sees this destination in a frame of your site.

    Without `may_edit` it needs the role operator, with it editor. The response contains the address,
    which cannot
    be read again.

    Args:
        pipe (str):
        name (str):
        idempotency_key (str | Unset):
        body (PortalLinkIn): Portal link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewPortalLinkOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        body=body,
        idempotency_key=idempotency_key,
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
    body: PortalLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> NewPortalLinkOut | None:
    """Create a link with which a customer sees this destination in a frame of your site.

    Without `may_edit` it needs the role operator, with it editor. The response contains the address,
    which cannot
    be read again.

    Args:
        pipe (str):
        name (str):
        idempotency_key (str | Unset):
        body (PortalLinkIn): Portal link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewPortalLinkOut
    """

    return sync_detailed(
        pipe=pipe,
        name=name,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: PortalLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewPortalLinkOut]:
    """Create a link with which a customer sees this destination in a frame of your site.

    Without `may_edit` it needs the role operator, with it editor. The response contains the address,
    which cannot
    be read again.

    Args:
        pipe (str):
        name (str):
        idempotency_key (str | Unset):
        body (PortalLinkIn): Portal link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewPortalLinkOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: PortalLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> NewPortalLinkOut | None:
    """Create a link with which a customer sees this destination in a frame of your site.

    Without `may_edit` it needs the role operator, with it editor. The response contains the address,
    which cannot
    be read again.

    Args:
        pipe (str):
        name (str):
        idempotency_key (str | Unset):
        body (PortalLinkIn): Portal link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewPortalLinkOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            name=name,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
