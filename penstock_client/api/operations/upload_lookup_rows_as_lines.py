from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.upload_out import UploadOut
from ...types import File, FileTypes
from ...types import UNSET, Unset
from io import BytesIO
from typing import cast


def _get_kwargs(
    table: str,
    *,
    body: File | Unset = UNSET,
    key: str | Unset = UNSET,
    mode: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["key"] = key

    params["mode"] = mode

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/lookup-tables/{table}/upload/#as_lines".format(
            table=quote(str(table), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/x-ndjson"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> UploadOut | None:
    if response.status_code == 200:
        response_200 = UploadOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[UploadOut]:
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
    body: File | Unset = UNSET,
    key: str | Unset = UNSET,
    mode: str | Unset = UNSET,
) -> Response[UploadOut]:
    """Store all rows of a CSV file with a header line, or of JSON lines, or none. `errors` names the bad
    row.

    Args:
        table (str):
        key (str | Unset):
        mode (str | Unset):
        body (File | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadOut]
    """

    kwargs = _get_kwargs(
        table=table,
        body=body,
        key=key,
        mode=mode,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    table: str,
    *,
    client: AuthenticatedClient | Client,
    body: File | Unset = UNSET,
    key: str | Unset = UNSET,
    mode: str | Unset = UNSET,
) -> UploadOut | None:
    """Store all rows of a CSV file with a header line, or of JSON lines, or none. `errors` names the bad
    row.

    Args:
        table (str):
        key (str | Unset):
        mode (str | Unset):
        body (File | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadOut
    """

    return sync_detailed(
        table=table,
        client=client,
        body=body,
        key=key,
        mode=mode,
    ).parsed


async def asyncio_detailed(
    table: str,
    *,
    client: AuthenticatedClient | Client,
    body: File | Unset = UNSET,
    key: str | Unset = UNSET,
    mode: str | Unset = UNSET,
) -> Response[UploadOut]:
    """Store all rows of a CSV file with a header line, or of JSON lines, or none. `errors` names the bad
    row.

    Args:
        table (str):
        key (str | Unset):
        mode (str | Unset):
        body (File | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadOut]
    """

    kwargs = _get_kwargs(
        table=table,
        body=body,
        key=key,
        mode=mode,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    table: str,
    *,
    client: AuthenticatedClient | Client,
    body: File | Unset = UNSET,
    key: str | Unset = UNSET,
    mode: str | Unset = UNSET,
) -> UploadOut | None:
    """Store all rows of a CSV file with a header line, or of JSON lines, or none. `errors` names the bad
    row.

    Args:
        table (str):
        key (str | Unset):
        mode (str | Unset):
        body (File | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadOut
    """

    return (
        await asyncio_detailed(
            table=table,
            client=client,
            body=body,
            key=key,
            mode=mode,
        )
    ).parsed
