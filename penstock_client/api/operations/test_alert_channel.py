from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.channel_out import ChannelOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    channel: str,
    *,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/tenants/{tenant}/alert-channels/{channel}/test/".format(
            tenant=quote(str(tenant), safe=""),
            channel=quote(str(channel), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ChannelOut | None:
    if response.status_code == 202:
        response_202 = ChannelOut.from_dict(response.json())

        return response_202

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ChannelOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    tenant: str,
    channel: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> Response[ChannelOut]:
    """Send a test message. Its result is in the channel once `test_due_at` is null: `tested_at` and
    `test_error`.

    PagerDuty gets an event of the severity `info`, and its resolution.

    Args:
        tenant (str):
        channel (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChannelOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        channel=channel,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    channel: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> ChannelOut | None:
    """Send a test message. Its result is in the channel once `test_due_at` is null: `tested_at` and
    `test_error`.

    PagerDuty gets an event of the severity `info`, and its resolution.

    Args:
        tenant (str):
        channel (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChannelOut
    """

    return sync_detailed(
        tenant=tenant,
        channel=channel,
        client=client,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    channel: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> Response[ChannelOut]:
    """Send a test message. Its result is in the channel once `test_due_at` is null: `tested_at` and
    `test_error`.

    PagerDuty gets an event of the severity `info`, and its resolution.

    Args:
        tenant (str):
        channel (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChannelOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        channel=channel,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    channel: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> ChannelOut | None:
    """Send a test message. Its result is in the channel once `test_due_at` is null: `tested_at` and
    `test_error`.

    PagerDuty gets an event of the severity `info`, and its resolution.

    Args:
        tenant (str):
        channel (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChannelOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            channel=channel,
            client=client,
            idempotency_key=idempotency_key,
        )
    ).parsed
