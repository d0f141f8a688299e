from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.shadow_detail_out import ShadowDetailOut
from typing import cast


def _get_kwargs(
    pipe: str,
    shadow: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/shadows/{shadow}/".format(
            pipe=quote(str(pipe), safe=""),
            shadow=quote(str(shadow), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ShadowDetailOut | None:
    if response.status_code == 200:
        response_200 = ShadowDetailOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ShadowDetailOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    shadow: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ShadowDetailOut]:
    """Return a shadow run with its draft, the fields that differ, samples, and the CPU time of both.

    Args:
        pipe (str):
        shadow (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ShadowDetailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        shadow=shadow,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    shadow: str,
    *,
    client: AuthenticatedClient | Client,
) -> ShadowDetailOut | None:
    """Return a shadow run with its draft, the fields that differ, samples, and the CPU time of both.

    Args:
        pipe (str):
        shadow (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ShadowDetailOut
    """

    return sync_detailed(
        pipe=pipe,
        shadow=shadow,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    shadow: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ShadowDetailOut]:
    """Return a shadow run with its draft, the fields that differ, samples, and the CPU time of both.

    Args:
        pipe (str):
        shadow (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ShadowDetailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        shadow=shadow,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    shadow: str,
    *,
    client: AuthenticatedClient | Client,
) -> ShadowDetailOut | None:
    """Return a shadow run with its draft, the fields that differ, samples, and the CPU time of both.

    Args:
        pipe (str):
        shadow (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ShadowDetailOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            shadow=shadow,
            client=client,
        )
    ).parsed
