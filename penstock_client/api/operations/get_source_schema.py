from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.source_schema_out import SourceSchemaOut
from typing import cast


def _get_kwargs(
    pipe: str,
    source: str,
    number: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/sources/{source}/schemas/{number}/".format(
            pipe=quote(str(pipe), safe=""),
            source=quote(str(source), safe=""),
            number=quote(str(number), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> SourceSchemaOut | None:
    if response.status_code == 200:
        response_200 = SourceSchemaOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[SourceSchemaOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    source: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[SourceSchemaOut]:
    """Return a version of a source's schema as it was registered.

    Args:
        pipe (str):
        source (str):
        number (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SourceSchemaOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
        number=number,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    source: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
) -> SourceSchemaOut | None:
    """Return a version of a source's schema as it was registered.

    Args:
        pipe (str):
        source (str):
        number (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SourceSchemaOut
    """

    return sync_detailed(
        pipe=pipe,
        source=source,
        number=number,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    source: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[SourceSchemaOut]:
    """Return a version of a source's schema as it was registered.

    Args:
        pipe (str):
        source (str):
        number (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SourceSchemaOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
        number=number,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    source: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
) -> SourceSchemaOut | None:
    """Return a version of a source's schema as it was registered.

    Args:
        pipe (str):
        source (str):
        number (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SourceSchemaOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            source=source,
            number=number,
            client=client,
        )
    ).parsed
