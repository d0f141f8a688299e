from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.destination_test_out import DestinationTestOut
from typing import cast


def _get_kwargs(
    test: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/destination-tests/{test}/".format(
            test=quote(str(test), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DestinationTestOut | None:
    if response.status_code == 200:
        response_200 = DestinationTestOut.from_dict(response.json())

        return response_200

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
    test: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[DestinationTestOut]:
    """Return a test request. The result is available once `state` is `done`, and kept for a day.

    Args:
        test (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationTestOut]
    """

    kwargs = _get_kwargs(
        test=test,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    test: str,
    *,
    client: AuthenticatedClient | Client,
) -> DestinationTestOut | None:
    """Return a test request. The result is available once `state` is `done`, and kept for a day.

    Args:
        test (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationTestOut
    """

    return sync_detailed(
        test=test,
        client=client,
    ).parsed


async def asyncio_detailed(
    test: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[DestinationTestOut]:
    """Return a test request. The result is available once `state` is `done`, and kept for a day.

    Args:
        test (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationTestOut]
    """

    kwargs = _get_kwargs(
        test=test,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    test: str,
    *,
    client: AuthenticatedClient | Client,
) -> DestinationTestOut | None:
    """Return a test request. The result is available once `state` is `done`, and kept for a day.

    Args:
        test (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationTestOut
    """

    return (
        await asyncio_detailed(
            test=test,
            client=client,
        )
    ).parsed
