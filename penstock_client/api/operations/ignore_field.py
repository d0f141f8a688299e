from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.ignored_field_in import IgnoredFieldIn
from ...models.ignored_field_out import IgnoredFieldOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    body: IgnoredFieldIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/ignored-fields/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> IgnoredFieldOut | None:
    if response.status_code == 201:
        response_201 = IgnoredFieldOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[IgnoredFieldOut]:
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
    body: IgnoredFieldIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[IgnoredFieldOut]:
    """Ignore the drift of a numeric field. An open alert no longer names it.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (IgnoredFieldIn): A numeric field to ignore.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[IgnoredFieldOut]
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
    body: IgnoredFieldIn,
    idempotency_key: str | Unset = UNSET,
) -> IgnoredFieldOut | None:
    """Ignore the drift of a numeric field. An open alert no longer names it.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (IgnoredFieldIn): A numeric field to ignore.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        IgnoredFieldOut
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
    body: IgnoredFieldIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[IgnoredFieldOut]:
    """Ignore the drift of a numeric field. An open alert no longer names it.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (IgnoredFieldIn): A numeric field to ignore.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[IgnoredFieldOut]
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
    body: IgnoredFieldIn,
    idempotency_key: str | Unset = UNSET,
) -> IgnoredFieldOut | None:
    """Ignore the drift of a numeric field. An open alert no longer names it.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (IgnoredFieldIn): A numeric field to ignore.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        IgnoredFieldOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
