from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.journey_out import JourneyOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    position: str,
    *,
    child: int | Unset = UNSET,
    minute: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["child"] = child

    params["minute"] = minute

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/messages/{position}/".format(
            pipe=quote(str(pipe), safe=""),
            position=quote(str(position), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> JourneyOut | None:
    if response.status_code == 200:
        response_200 = JourneyOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[JourneyOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    position: str,
    *,
    client: AuthenticatedClient | Client,
    child: int | Unset = UNSET,
    minute: int | Unset = UNSET,
) -> Response[JourneyOut]:
    """Return the journey of a message: the event, each stage, each destination with its attempts, and all
    bins.

    Args:
        pipe (str):
        position (str):
        child (int | Unset):
        minute (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[JourneyOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        position=position,
        child=child,
        minute=minute,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    position: str,
    *,
    client: AuthenticatedClient | Client,
    child: int | Unset = UNSET,
    minute: int | Unset = UNSET,
) -> JourneyOut | None:
    """Return the journey of a message: the event, each stage, each destination with its attempts, and all
    bins.

    Args:
        pipe (str):
        position (str):
        child (int | Unset):
        minute (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        JourneyOut
    """

    return sync_detailed(
        pipe=pipe,
        position=position,
        client=client,
        child=child,
        minute=minute,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    position: str,
    *,
    client: AuthenticatedClient | Client,
    child: int | Unset = UNSET,
    minute: int | Unset = UNSET,
) -> Response[JourneyOut]:
    """Return the journey of a message: the event, each stage, each destination with its attempts, and all
    bins.

    Args:
        pipe (str):
        position (str):
        child (int | Unset):
        minute (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[JourneyOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        position=position,
        child=child,
        minute=minute,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    position: str,
    *,
    client: AuthenticatedClient | Client,
    child: int | Unset = UNSET,
    minute: int | Unset = UNSET,
) -> JourneyOut | None:
    """Return the journey of a message: the event, each stage, each destination with its attempts, and all
    bins.

    Args:
        pipe (str):
        position (str):
        child (int | Unset):
        minute (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        JourneyOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            position=position,
            client=client,
            child=child,
            minute=minute,
        )
    ).parsed
