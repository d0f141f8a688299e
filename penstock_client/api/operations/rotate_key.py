from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.new_key_out import NewKeyOut
from ...models.rotation_in import RotationIn
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    key: str,
    *,
    body: RotationIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/keys/{key}/rotate/".format(
            pipe=quote(str(pipe), safe=""),
            key=quote(str(key), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> NewKeyOut | None:
    if response.status_code == 201:
        response_201 = NewKeyOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[NewKeyOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
    body: RotationIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewKeyOut]:
    """Create a successor of an API key with its label; the old key works until the overlap has passed.

    The response contains the new key, which cannot be read again.

    Args:
        pipe (str):
        key (str):
        idempotency_key (str | Unset):
        body (RotationIn | Unset): Rotation of an API key. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewKeyOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        key=key,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
    body: RotationIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> NewKeyOut | None:
    """Create a successor of an API key with its label; the old key works until the overlap has passed.

    The response contains the new key, which cannot be read again.

    Args:
        pipe (str):
        key (str):
        idempotency_key (str | Unset):
        body (RotationIn | Unset): Rotation of an API key. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewKeyOut
    """

    return sync_detailed(
        pipe=pipe,
        key=key,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
    body: RotationIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewKeyOut]:
    """Create a successor of an API key with its label; the old key works until the overlap has passed.

    The response contains the new key, which cannot be read again.

    Args:
        pipe (str):
        key (str):
        idempotency_key (str | Unset):
        body (RotationIn | Unset): Rotation of an API key. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewKeyOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        key=key,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
    body: RotationIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> NewKeyOut | None:
    """Create a successor of an API key with its label; the old key works until the overlap has passed.

    The response contains the new key, which cannot be read again.

    Args:
        pipe (str):
        key (str):
        idempotency_key (str | Unset):
        body (RotationIn | Unset): Rotation of an API key. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewKeyOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            key=key,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
