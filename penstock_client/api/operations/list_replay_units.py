from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.replay_units_out import ReplayUnitsOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    replay: str,
    *,
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["bin"] = bin_

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/replays/{replay}/units/".format(
            pipe=quote(str(pipe), safe=""),
            replay=quote(str(replay), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ReplayUnitsOut | None:
    if response.status_code == 200:
        response_200 = ReplayUnitsOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ReplayUnitsOut]:
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
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[ReplayUnitsOut]:
    """List the messages of a replay that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones. They are kept as long as those of
    minutes.

    Args:
        pipe (str):
        replay (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ReplayUnitsOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        replay=replay,
        bin_=bin_,
        limit=limit,
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
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> ReplayUnitsOut | None:
    """List the messages of a replay that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones. They are kept as long as those of
    minutes.

    Args:
        pipe (str):
        replay (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ReplayUnitsOut
    """

    return sync_detailed(
        pipe=pipe,
        replay=replay,
        client=client,
        bin_=bin_,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[ReplayUnitsOut]:
    """List the messages of a replay that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones. They are kept as long as those of
    minutes.

    Args:
        pipe (str):
        replay (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ReplayUnitsOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        replay=replay,
        bin_=bin_,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    replay: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> ReplayUnitsOut | None:
    """List the messages of a replay that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones. They are kept as long as those of
    minutes.

    Args:
        pipe (str):
        replay (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ReplayUnitsOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            replay=replay,
            client=client,
            bin_=bin_,
            limit=limit,
        )
    ).parsed
