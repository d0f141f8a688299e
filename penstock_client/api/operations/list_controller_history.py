from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.history_out import HistoryOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    controller: str,
    *,
    before: int | Unset = UNSET,
    outcome: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["before"] = before

    params["outcome"] = outcome

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/staff/controllers/{controller}/history/".format(
            controller=quote(str(controller), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> HistoryOut | None:
    if response.status_code == 200:
        response_200 = HistoryOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[HistoryOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    controller: str,
    *,
    client: AuthenticatedClient | Client,
    before: int | Unset = UNSET,
    outcome: str | Unset = UNSET,
) -> Response[HistoryOut]:
    """List the changes and refusals of a controller, newest first; repeated refusals share a line. For
    staff.

    Args:
        controller (str):
        before (int | Unset):
        outcome (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[HistoryOut]
    """

    kwargs = _get_kwargs(
        controller=controller,
        before=before,
        outcome=outcome,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    controller: str,
    *,
    client: AuthenticatedClient | Client,
    before: int | Unset = UNSET,
    outcome: str | Unset = UNSET,
) -> HistoryOut | None:
    """List the changes and refusals of a controller, newest first; repeated refusals share a line. For
    staff.

    Args:
        controller (str):
        before (int | Unset):
        outcome (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        HistoryOut
    """

    return sync_detailed(
        controller=controller,
        client=client,
        before=before,
        outcome=outcome,
    ).parsed


async def asyncio_detailed(
    controller: str,
    *,
    client: AuthenticatedClient | Client,
    before: int | Unset = UNSET,
    outcome: str | Unset = UNSET,
) -> Response[HistoryOut]:
    """List the changes and refusals of a controller, newest first; repeated refusals share a line. For
    staff.

    Args:
        controller (str):
        before (int | Unset):
        outcome (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[HistoryOut]
    """

    kwargs = _get_kwargs(
        controller=controller,
        before=before,
        outcome=outcome,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    controller: str,
    *,
    client: AuthenticatedClient | Client,
    before: int | Unset = UNSET,
    outcome: str | Unset = UNSET,
) -> HistoryOut | None:
    """List the changes and refusals of a controller, newest first; repeated refusals share a line. For
    staff.

    Args:
        controller (str):
        before (int | Unset):
        outcome (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        HistoryOut
    """

    return (
        await asyncio_detailed(
            controller=controller,
            client=client,
            before=before,
            outcome=outcome,
        )
    ).parsed
