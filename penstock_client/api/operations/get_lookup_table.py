from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.lookup_table_out import LookupTableOut
from typing import cast


def _get_kwargs(
    table: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/lookup-tables/{table}/".format(
            table=quote(str(table), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> LookupTableOut | None:
    if response.status_code == 200:
        response_200 = LookupTableOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[LookupTableOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    table: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[LookupTableOut]:
    """Return a look-up table.

    Args:
        table (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LookupTableOut]
    """

    kwargs = _get_kwargs(
        table=table,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    table: str,
    *,
    client: AuthenticatedClient | Client,
) -> LookupTableOut | None:
    """Return a look-up table.

    Args:
        table (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LookupTableOut
    """

    return sync_detailed(
        table=table,
        client=client,
    ).parsed


async def asyncio_detailed(
    table: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[LookupTableOut]:
    """Return a look-up table.

    Args:
        table (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LookupTableOut]
    """

    kwargs = _get_kwargs(
        table=table,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    table: str,
    *,
    client: AuthenticatedClient | Client,
) -> LookupTableOut | None:
    """Return a look-up table.

    Args:
        table (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LookupTableOut
    """

    return (
        await asyncio_detailed(
            table=table,
            client=client,
        )
    ).parsed
