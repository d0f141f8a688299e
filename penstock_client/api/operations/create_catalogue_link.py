from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.catalogue_link_in import CatalogueLinkIn
from ...models.new_catalogue_link_out import NewCatalogueLinkOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    *,
    body: CatalogueLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/tenants/{tenant}/schemas/links/".format(
            tenant=quote(str(tenant), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> NewCatalogueLinkOut | None:
    if response.status_code == 201:
        response_201 = NewCatalogueLinkOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[NewCatalogueLinkOut]:
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
    body: CatalogueLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewCatalogueLinkOut]:
    """Create a link with which anyone can read the event catalogue: types, versions, fields and changes.

    It shows no pipes, members, traffic or events. The response contains its address, which cannot be
    read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (CatalogueLinkIn): Link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewCatalogueLinkOut]
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
    body: CatalogueLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> NewCatalogueLinkOut | None:
    """Create a link with which anyone can read the event catalogue: types, versions, fields and changes.

    It shows no pipes, members, traffic or events. The response contains its address, which cannot be
    read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (CatalogueLinkIn): Link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewCatalogueLinkOut
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
    body: CatalogueLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewCatalogueLinkOut]:
    """Create a link with which anyone can read the event catalogue: types, versions, fields and changes.

    It shows no pipes, members, traffic or events. The response contains its address, which cannot be
    read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (CatalogueLinkIn): Link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewCatalogueLinkOut]
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
    body: CatalogueLinkIn,
    idempotency_key: str | Unset = UNSET,
) -> NewCatalogueLinkOut | None:
    """Create a link with which anyone can read the event catalogue: types, versions, fields and changes.

    It shows no pipes, members, traffic or events. The response contains its address, which cannot be
    read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (CatalogueLinkIn): Link to create.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewCatalogueLinkOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
