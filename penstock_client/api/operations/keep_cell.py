from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.cell_out import CellOut
from ...models.keep_in import KeepIn
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    cell: str,
    *,
    body: KeepIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/staff/cells/{cell}/keep/".format(
            cell=quote(str(cell), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> CellOut | None:
    if response.status_code == 200:
        response_200 = CellOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[CellOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    cell: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeepIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[CellOut]:
    """Dedicate a cell to one tenant, with an optional sleep when idle, or make it available to all. For
    staff.

    Args:
        cell (str):
        idempotency_key (str | Unset):
        body (KeepIn): Dedication of a cell to one tenant, and its sleep.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CellOut]
    """

    kwargs = _get_kwargs(
        cell=cell,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    cell: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeepIn,
    idempotency_key: str | Unset = UNSET,
) -> CellOut | None:
    """Dedicate a cell to one tenant, with an optional sleep when idle, or make it available to all. For
    staff.

    Args:
        cell (str):
        idempotency_key (str | Unset):
        body (KeepIn): Dedication of a cell to one tenant, and its sleep.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CellOut
    """

    return sync_detailed(
        cell=cell,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    cell: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeepIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[CellOut]:
    """Dedicate a cell to one tenant, with an optional sleep when idle, or make it available to all. For
    staff.

    Args:
        cell (str):
        idempotency_key (str | Unset):
        body (KeepIn): Dedication of a cell to one tenant, and its sleep.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CellOut]
    """

    kwargs = _get_kwargs(
        cell=cell,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    cell: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeepIn,
    idempotency_key: str | Unset = UNSET,
) -> CellOut | None:
    """Dedicate a cell to one tenant, with an optional sleep when idle, or make it available to all. For
    staff.

    Args:
        cell (str):
        idempotency_key (str | Unset):
        body (KeepIn): Dedication of a cell to one tenant, and its sleep.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CellOut
    """

    return (
        await asyncio_detailed(
            cell=cell,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
