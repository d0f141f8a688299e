from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.minute_units_out import MinuteUnitsOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    bucket: str,
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
        "url": "/api/v1/pipes/{pipe}/minutes/{bucket}/units/".format(
            pipe=quote(str(pipe), safe=""),
            bucket=quote(str(bucket), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> MinuteUnitsOut | None:
    if response.status_code == 200:
        response_200 = MinuteUnitsOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[MinuteUnitsOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[MinuteUnitsOut]:
    """List the messages of one minute that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones.

    Args:
        pipe (str):
        bucket (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MinuteUnitsOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        bucket=bucket,
        bin_=bin_,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> MinuteUnitsOut | None:
    """List the messages of one minute that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones.

    Args:
        pipe (str):
        bucket (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MinuteUnitsOut
    """

    return sync_detailed(
        pipe=pipe,
        bucket=bucket,
        client=client,
        bin_=bin_,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[MinuteUnitsOut]:
    """List the messages of one minute that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones.

    Args:
        pipe (str):
        bucket (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MinuteUnitsOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        bucket=bucket,
        bin_=bin_,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
    bin_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> MinuteUnitsOut | None:
    """List the messages of one minute that are in one bin, by position; lost ones with their last node.

    At most 200 are listed; `more` is the number of further ones.

    Args:
        pipe (str):
        bucket (str):
        bin_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MinuteUnitsOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            bucket=bucket,
            client=client,
            bin_=bin_,
            limit=limit,
        )
    ).parsed
