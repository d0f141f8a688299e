from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.put_lookup_row_body import PutLookupRowBody
from ...models.put_lookup_row_response_200 import PutLookupRowResponse200
from ...models.put_lookup_row_response_201 import PutLookupRowResponse201
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    table: str,
    key: str,
    *,
    body: PutLookupRowBody | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/lookup-tables/{table}/rows/{key}/".format(
            table=quote(str(table), safe=""),
            key=quote(str(key), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PutLookupRowResponse200 | PutLookupRowResponse201 | None:
    if response.status_code == 200:
        response_200 = PutLookupRowResponse200.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = PutLookupRowResponse201.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[PutLookupRowResponse200 | PutLookupRowResponse201]:
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
    body: PutLookupRowBody | Unset = UNSET,
) -> Response[PutLookupRowResponse200 | PutLookupRowResponse201]:
    """Store a row, a JSON object, under its key; 201 if it is new. Running pipes use it within seconds.

    Args:
        table (str):
        key (str):
        body (PutLookupRowBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PutLookupRowResponse200 | PutLookupRowResponse201]
    """

    kwargs = _get_kwargs(
        table=table,
        key=key,
        body=body,
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
    body: PutLookupRowBody | Unset = UNSET,
) -> PutLookupRowResponse200 | PutLookupRowResponse201 | None:
    """Store a row, a JSON object, under its key; 201 if it is new. Running pipes use it within seconds.

    Args:
        table (str):
        key (str):
        body (PutLookupRowBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PutLookupRowResponse200 | PutLookupRowResponse201
    """

    return sync_detailed(
        table=table,
        key=key,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    table: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
    body: PutLookupRowBody | Unset = UNSET,
) -> Response[PutLookupRowResponse200 | PutLookupRowResponse201]:
    """Store a row, a JSON object, under its key; 201 if it is new. Running pipes use it within seconds.

    Args:
        table (str):
        key (str):
        body (PutLookupRowBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PutLookupRowResponse200 | PutLookupRowResponse201]
    """

    kwargs = _get_kwargs(
        table=table,
        key=key,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    table: str,
    key: str,
    *,
    client: AuthenticatedClient | Client,
    body: PutLookupRowBody | Unset = UNSET,
) -> PutLookupRowResponse200 | PutLookupRowResponse201 | None:
    """Store a row, a JSON object, under its key; 201 if it is new. Running pipes use it within seconds.

    Args:
        table (str):
        key (str):
        body (PutLookupRowBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PutLookupRowResponse200 | PutLookupRowResponse201
    """

    return (
        await asyncio_detailed(
            table=table,
            key=key,
            client=client,
            body=body,
        )
    ).parsed
