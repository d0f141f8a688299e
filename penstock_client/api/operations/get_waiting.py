from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.waiting_groups_out import WaitingGroupsOut
from typing import cast


def _get_kwargs(
    pipe: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/waiting/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> WaitingGroupsOut | None:
    if response.status_code == 200:
        response_200 = WaitingGroupsOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[WaitingGroupsOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[WaitingGroupsOut]:
    """Count a pipe's dead letters and held messages by destination and cause, oldest first.

    Unlike the lists of dead letters and held messages, these counts are complete.

    Args:
        pipe (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[WaitingGroupsOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
) -> WaitingGroupsOut | None:
    """Count a pipe's dead letters and held messages by destination and cause, oldest first.

    Unlike the lists of dead letters and held messages, these counts are complete.

    Args:
        pipe (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        WaitingGroupsOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[WaitingGroupsOut]:
    """Count a pipe's dead letters and held messages by destination and cause, oldest first.

    Unlike the lists of dead letters and held messages, these counts are complete.

    Args:
        pipe (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[WaitingGroupsOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
) -> WaitingGroupsOut | None:
    """Count a pipe's dead letters and held messages by destination and cause, oldest first.

    Unlike the lists of dead letters and held messages, these counts are complete.

    Args:
        pipe (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        WaitingGroupsOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
        )
    ).parsed
