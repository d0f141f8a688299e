from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.schema_text_page_out import SchemaTextPageOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    fingerprint: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    schema_id: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["fingerprint"] = fingerprint

    params["limit"] = limit

    params["schema_id"] = schema_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/schemas/texts/",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> SchemaTextPageOut | None:
    if response.status_code == 200:
        response_200 = SchemaTextPageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[SchemaTextPageOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    fingerprint: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    schema_id: int | Unset = UNSET,
) -> Response[SchemaTextPageOut]:
    """Find the schemas of all your tenants by fingerprint or id, each with the versions that have it.

    Several schemas can have one fingerprint: the canonical form omits defaults and documentation.

    Args:
        cursor (str | Unset):
        fingerprint (str | Unset):
        limit (int | Unset):
        schema_id (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SchemaTextPageOut]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        fingerprint=fingerprint,
        limit=limit,
        schema_id=schema_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    fingerprint: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    schema_id: int | Unset = UNSET,
) -> SchemaTextPageOut | None:
    """Find the schemas of all your tenants by fingerprint or id, each with the versions that have it.

    Several schemas can have one fingerprint: the canonical form omits defaults and documentation.

    Args:
        cursor (str | Unset):
        fingerprint (str | Unset):
        limit (int | Unset):
        schema_id (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SchemaTextPageOut
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        fingerprint=fingerprint,
        limit=limit,
        schema_id=schema_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    fingerprint: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    schema_id: int | Unset = UNSET,
) -> Response[SchemaTextPageOut]:
    """Find the schemas of all your tenants by fingerprint or id, each with the versions that have it.

    Several schemas can have one fingerprint: the canonical form omits defaults and documentation.

    Args:
        cursor (str | Unset):
        fingerprint (str | Unset):
        limit (int | Unset):
        schema_id (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SchemaTextPageOut]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        fingerprint=fingerprint,
        limit=limit,
        schema_id=schema_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    cursor: str | Unset = UNSET,
    fingerprint: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    schema_id: int | Unset = UNSET,
) -> SchemaTextPageOut | None:
    """Find the schemas of all your tenants by fingerprint or id, each with the versions that have it.

    Several schemas can have one fingerprint: the canonical form omits defaults and documentation.

    Args:
        cursor (str | Unset):
        fingerprint (str | Unset):
        limit (int | Unset):
        schema_id (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SchemaTextPageOut
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            fingerprint=fingerprint,
            limit=limit,
            schema_id=schema_id,
        )
    ).parsed
