from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.draft_check_out import DraftCheckOut
from ...models.schema_draft_in import SchemaDraftIn
from typing import cast


def _get_kwargs(
    *,
    body: SchemaDraftIn,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/schemas/check/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DraftCheckOut | None:
    if response.status_code == 200:
        response_200 = DraftCheckOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[DraftCheckOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
) -> Response[DraftCheckOut]:
    """Compare a schema with the versions that the subject's compatibility level names. Stores nothing.

    Args:
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DraftCheckOut]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
) -> DraftCheckOut | None:
    """Compare a schema with the versions that the subject's compatibility level names. Stores nothing.

    Args:
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DraftCheckOut
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
) -> Response[DraftCheckOut]:
    """Compare a schema with the versions that the subject's compatibility level names. Stores nothing.

    Args:
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DraftCheckOut]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
) -> DraftCheckOut | None:
    """Compare a schema with the versions that the subject's compatibility level names. Stores nothing.

    Args:
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DraftCheckOut
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
