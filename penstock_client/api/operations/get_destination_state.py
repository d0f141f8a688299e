from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.destination_state_out import DestinationStateOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    name: str,
    *,
    range_: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["range"] = range_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/destinations/{name}/state/".format(
            pipe=quote(str(pipe), safe=""),
            name=quote(str(name), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DestinationStateOut | None:
    if response.status_code == 200:
        response_200 = DestinationStateOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[DestinationStateOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> Response[DestinationStateOut]:
    """Return whether a destination receives its messages: state, breaker, waiting messages, and recent
    bins.

    Args:
        pipe (str):
        name (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationStateOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        range_=range_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> DestinationStateOut | None:
    """Return whether a destination receives its messages: state, breaker, waiting messages, and recent
    bins.

    Args:
        pipe (str):
        name (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationStateOut
    """

    return sync_detailed(
        pipe=pipe,
        name=name,
        client=client,
        range_=range_,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> Response[DestinationStateOut]:
    """Return whether a destination receives its messages: state, breaker, waiting messages, and recent
    bins.

    Args:
        pipe (str):
        name (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationStateOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        range_=range_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> DestinationStateOut | None:
    """Return whether a destination receives its messages: state, breaker, waiting messages, and recent
    bins.

    Args:
        pipe (str):
        name (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationStateOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            name=name,
            client=client,
            range_=range_,
        )
    ).parsed
