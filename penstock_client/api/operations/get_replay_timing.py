from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.latency_out import LatencyOut
from typing import cast


def _get_kwargs(
    pipe: str,
    replay: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/replays/{replay}/timing/".format(
            pipe=quote(str(pipe), safe=""),
            replay=quote(str(replay), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> LatencyOut | None:
    if response.status_code == 200:
        response_200 = LatencyOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[LatencyOut]:
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
) -> Response[LatencyOut]:
    """Return the lags and process durations of each node, and the breakdown of the time of delivered
    messages.

    The time of a copy is measured from the ingest of the original: its time in queues includes the
    event's age.

    Args:
        pipe (str):
        replay (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LatencyOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        replay=replay,
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
) -> LatencyOut | None:
    """Return the lags and process durations of each node, and the breakdown of the time of delivered
    messages.

    The time of a copy is measured from the ingest of the original: its time in queues includes the
    event's age.

    Args:
        pipe (str):
        replay (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LatencyOut
    """

    return sync_detailed(
        pipe=pipe,
        replay=replay,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[LatencyOut]:
    """Return the lags and process durations of each node, and the breakdown of the time of delivered
    messages.

    The time of a copy is measured from the ingest of the original: its time in queues includes the
    event's age.

    Args:
        pipe (str):
        replay (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LatencyOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        replay=replay,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
) -> LatencyOut | None:
    """Return the lags and process durations of each node, and the breakdown of the time of delivered
    messages.

    The time of a copy is measured from the ingest of the original: its time in queues includes the
    event's age.

    Args:
        pipe (str):
        replay (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LatencyOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            replay=replay,
            client=client,
        )
    ).parsed
