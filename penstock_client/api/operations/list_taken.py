from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.taken_out import TakenOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    number: str,
    *,
    bin_: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["bin"] = bin_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/revisions/{number}/ramp/taken/".format(
            pipe=quote(str(pipe), safe=""),
            number=quote(str(number), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> TakenOut | None:
    if response.status_code == 200:
        response_200 = TakenOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[TakenOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
) -> Response[TakenOut]:
    """List the units that the revision processed during its ramp, each with its current bin; the newest
    200.

    Args:
        pipe (str):
        number (str):
        bin_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TakenOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        number=number,
        bin_=bin_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
) -> TakenOut | None:
    """List the units that the revision processed during its ramp, each with its current bin; the newest
    200.

    Args:
        pipe (str):
        number (str):
        bin_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TakenOut
    """

    return sync_detailed(
        pipe=pipe,
        number=number,
        client=client,
        bin_=bin_,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
) -> Response[TakenOut]:
    """List the units that the revision processed during its ramp, each with its current bin; the newest
    200.

    Args:
        pipe (str):
        number (str):
        bin_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TakenOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        number=number,
        bin_=bin_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
) -> TakenOut | None:
    """List the units that the revision processed during its ramp, each with its current bin; the newest
    200.

    Args:
        pipe (str):
        number (str):
        bin_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TakenOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            number=number,
            client=client,
            bin_=bin_,
        )
    ).parsed
