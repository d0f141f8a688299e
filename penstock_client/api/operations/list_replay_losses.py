from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.losses_out import LossesOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    replay: str,
    *,
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["offset"] = offset

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/replays/{replay}/losses/".format(
            pipe=quote(str(pipe), safe=""),
            replay=quote(str(replay), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> LossesOut | None:
    if response.status_code == 200:
        response_200 = LossesOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[LossesOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> Response[LossesOut]:
    """Return the loss of a replay by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses are final when the result of the replay is.

    Args:
        pipe (str):
        replay (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LossesOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        replay=replay,
        limit=limit,
        offset=offset,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> LossesOut | None:
    """Return the loss of a replay by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses are final when the result of the replay is.

    Args:
        pipe (str):
        replay (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LossesOut
    """

    return sync_detailed(
        pipe=pipe,
        replay=replay,
        client=client,
        limit=limit,
        offset=offset,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> Response[LossesOut]:
    """Return the loss of a replay by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses are final when the result of the replay is.

    Args:
        pipe (str):
        replay (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LossesOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        replay=replay,
        limit=limit,
        offset=offset,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> LossesOut | None:
    """Return the loss of a replay by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses are final when the result of the replay is.

    Args:
        pipe (str):
        replay (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LossesOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            replay=replay,
            client=client,
            limit=limit,
            offset=offset,
        )
    ).parsed
