from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.lookup_row_page_out import LookupRowPageOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    table: str,
    *,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    prefix: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["after"] = after

    params["limit"] = limit

    params["prefix"] = prefix

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/lookup-tables/{table}/rows/".format(
            table=quote(str(table), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> LookupRowPageOut | None:
    if response.status_code == 200:
        response_200 = LookupRowPageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[LookupRowPageOut]:
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
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    prefix: str | Unset = UNSET,
) -> Response[LookupRowPageOut]:
    """List rows whose keys start with a prefix, in key order.

    Args:
        table (str):
        after (str | Unset):
        limit (int | Unset):
        prefix (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LookupRowPageOut]
    """

    kwargs = _get_kwargs(
        table=table,
        after=after,
        limit=limit,
        prefix=prefix,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    table: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    prefix: str | Unset = UNSET,
) -> LookupRowPageOut | None:
    """List rows whose keys start with a prefix, in key order.

    Args:
        table (str):
        after (str | Unset):
        limit (int | Unset):
        prefix (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LookupRowPageOut
    """

    return sync_detailed(
        table=table,
        client=client,
        after=after,
        limit=limit,
        prefix=prefix,
    ).parsed


async def asyncio_detailed(
    table: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    prefix: str | Unset = UNSET,
) -> Response[LookupRowPageOut]:
    """List rows whose keys start with a prefix, in key order.

    Args:
        table (str):
        after (str | Unset):
        limit (int | Unset):
        prefix (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LookupRowPageOut]
    """

    kwargs = _get_kwargs(
        table=table,
        after=after,
        limit=limit,
        prefix=prefix,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    table: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    prefix: str | Unset = UNSET,
) -> LookupRowPageOut | None:
    """List rows whose keys start with a prefix, in key order.

    Args:
        table (str):
        after (str | Unset):
        limit (int | Unset):
        prefix (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LookupRowPageOut
    """

    return (
        await asyncio_detailed(
            table=table,
            client=client,
            after=after,
            limit=limit,
            prefix=prefix,
        )
    ).parsed
