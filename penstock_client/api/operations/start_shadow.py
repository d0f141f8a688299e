from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.shadow_in import ShadowIn
from ...models.shadow_out import ShadowOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    body: ShadowIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/shadows/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ShadowOut | None:
    if response.status_code == 201:
        response_201 = ShadowOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ShadowOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ShadowIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[ShadowOut]:
    """Run a draft over real events of the pipe without sending, and compare it with what the pipe has
    sent.

    The events are the newest ones, those of a range of ingest times, or with `follow` those that arrive
    until the
    run is stopped. Messages are compared by destination. A tenant has one run at a time.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ShadowIn): Draft to run over real events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ShadowOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ShadowIn,
    idempotency_key: str | Unset = UNSET,
) -> ShadowOut | None:
    """Run a draft over real events of the pipe without sending, and compare it with what the pipe has
    sent.

    The events are the newest ones, those of a range of ingest times, or with `follow` those that arrive
    until the
    run is stopped. Messages are compared by destination. A tenant has one run at a time.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ShadowIn): Draft to run over real events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ShadowOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ShadowIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[ShadowOut]:
    """Run a draft over real events of the pipe without sending, and compare it with what the pipe has
    sent.

    The events are the newest ones, those of a range of ingest times, or with `follow` those that arrive
    until the
    run is stopped. Messages are compared by destination. A tenant has one run at a time.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ShadowIn): Draft to run over real events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ShadowOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ShadowIn,
    idempotency_key: str | Unset = UNSET,
) -> ShadowOut | None:
    """Run a draft over real events of the pipe without sending, and compare it with what the pipe has
    sent.

    The events are the newest ones, those of a range of ingest times, or with `follow` those that arrive
    until the
    run is stopped. Messages are compared by destination. A tenant has one run at a time.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ShadowIn): Draft to run over real events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ShadowOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
