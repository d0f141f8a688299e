from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.get_lookup_row_response_200 import GetLookupRowResponse200
from typing import cast


def _get_kwargs(
    table: str,
    key: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/lookup-tables/{table}/rows/{key}/".format(
            table=quote(str(table), safe=""),
            key=quote(str(key), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> GetLookupRowResponse200 | None:
    if response.status_code == 200:
        response_200 = GetLookupRowResponse200.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[GetLookupRowResponse200]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    table: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[GetLookupRowResponse200]:
    """Return a row as it was stored. Rows of a stream-fed table are read from a host of the data plane.

    Args:
        table (str):
        key (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[GetLookupRowResponse200]
    """

    kwargs = _get_kwargs(
        table=table,
        key=key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    table: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
) -> GetLookupRowResponse200 | None:
    """Return a row as it was stored. Rows of a stream-fed table are read from a host of the data plane.

    Args:
        table (str):
        key (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        GetLookupRowResponse200
    """

    return sync_detailed(
        table=table,
        key=key,
        client=client,
    ).parsed


async def asyncio_detailed(
    table: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[GetLookupRowResponse200]:
    """Return a row as it was stored. Rows of a stream-fed table are read from a host of the data plane.

    Args:
        table (str):
        key (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[GetLookupRowResponse200]
    """

    kwargs = _get_kwargs(
        table=table,
        key=key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    table: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
) -> GetLookupRowResponse200 | None:
    """Return a row as it was stored. Rows of a stream-fed table are read from a host of the data plane.

    Args:
        table (str):
        key (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        GetLookupRowResponse200
    """

    return (
        await asyncio_detailed(
            table=table,
            key=key,
            client=client,
        )
    ).parsed
