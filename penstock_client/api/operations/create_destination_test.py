from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.destination_test_in import DestinationTestIn
from ...models.destination_test_out import DestinationTestOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    body: DestinationTestIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/destination-tests/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DestinationTestOut | None:
    if response.status_code == 202:
        response_202 = DestinationTestOut.from_dict(response.json())

        return response_202

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[DestinationTestOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: DestinationTestIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[DestinationTestOut]:
    """Send a signed test request, with the header `penstock-test: 1`, to a destination. Poll it for the
    result.

    Args:
        idempotency_key (str | Unset):
        body (DestinationTestIn): Test request to a destination: a saved one (with `pipe`), or one
            of a spec that is not saved (with `spec`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationTestOut]
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
    body: DestinationTestIn,
    idempotency_key: str | Unset = UNSET,
) -> DestinationTestOut | None:
    """Send a signed test request, with the header `penstock-test: 1`, to a destination. Poll it for the
    result.

    Args:
        idempotency_key (str | Unset):
        body (DestinationTestIn): Test request to a destination: a saved one (with `pipe`), or one
            of a spec that is not saved (with `spec`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationTestOut
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: DestinationTestIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[DestinationTestOut]:
    """Send a signed test request, with the header `penstock-test: 1`, to a destination. Poll it for the
    result.

    Args:
        idempotency_key (str | Unset):
        body (DestinationTestIn): Test request to a destination: a saved one (with `pipe`), or one
            of a spec that is not saved (with `spec`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationTestOut]
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
    body: DestinationTestIn,
    idempotency_key: str | Unset = UNSET,
) -> DestinationTestOut | None:
    """Send a signed test request, with the header `penstock-test: 1`, to a destination. Poll it for the
    result.

    Args:
        idempotency_key (str | Unset):
        body (DestinationTestIn): Test request to a destination: a saved one (with `pipe`), or one
            of a spec that is not saved (with `spec`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationTestOut
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
