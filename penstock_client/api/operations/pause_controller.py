from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.pause_in import PauseIn
from ...models.pause_out import PauseOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    body: PauseIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/staff/pauses/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> PauseOut | None:
    if response.status_code == 201:
        response_201 = PauseOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[PauseOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: PauseIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[PauseOut]:
    """Pause a controller for one cell or all cells. A change in progress is completed first. For staff.

    Args:
        idempotency_key (str | Unset):
        body (PauseIn): Pause of a controller, for one cell or for all.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PauseOut]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: PauseIn,
    idempotency_key: str | Unset = UNSET,
) -> PauseOut | None:
    """Pause a controller for one cell or all cells. A change in progress is completed first. For staff.

    Args:
        idempotency_key (str | Unset):
        body (PauseIn): Pause of a controller, for one cell or for all.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PauseOut
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: PauseIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[PauseOut]:
    """Pause a controller for one cell or all cells. A change in progress is completed first. For staff.

    Args:
        idempotency_key (str | Unset):
        body (PauseIn): Pause of a controller, for one cell or for all.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PauseOut]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: PauseIn,
    idempotency_key: str | Unset = UNSET,
) -> PauseOut | None:
    """Pause a controller for one cell or all cells. A change in progress is completed first. For staff.

    Args:
        idempotency_key (str | Unset):
        body (PauseIn): Pause of a controller, for one cell or for all.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PauseOut
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
