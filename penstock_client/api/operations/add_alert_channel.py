from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.channel_in import ChannelIn
from ...models.new_channel_out import NewChannelOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    *,
    body: ChannelIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/tenants/{tenant}/alert-channels/".format(
            tenant=quote(str(tenant), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> NewChannelOut | None:
    if response.status_code == 201:
        response_201 = NewChannelOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[NewChannelOut]:
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
    body: ChannelIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewChannelOut]:
    """Add a channel. An e-mail address gets alerts once it is confirmed with the link that Penstock sends
    to it.

    The response contains a webhook's signing secret, which cannot be read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ChannelIn): Notification channel to add.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewChannelOut]
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
    body: ChannelIn,
    idempotency_key: str | Unset = UNSET,
) -> NewChannelOut | None:
    """Add a channel. An e-mail address gets alerts once it is confirmed with the link that Penstock sends
    to it.

    The response contains a webhook's signing secret, which cannot be read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ChannelIn): Notification channel to add.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewChannelOut
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
    body: ChannelIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewChannelOut]:
    """Add a channel. An e-mail address gets alerts once it is confirmed with the link that Penstock sends
    to it.

    The response contains a webhook's signing secret, which cannot be read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ChannelIn): Notification channel to add.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewChannelOut]
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
    body: ChannelIn,
    idempotency_key: str | Unset = UNSET,
) -> NewChannelOut | None:
    """Add a channel. An e-mail address gets alerts once it is confirmed with the link that Penstock sends
    to it.

    The response contains a webhook's signing secret, which cannot be read again.

    Args:
        tenant (str):
        idempotency_key (str | Unset):
        body (ChannelIn): Notification channel to add.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewChannelOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
