from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.minute_detail_out import MinuteDetailOut
from typing import cast


def _get_kwargs(
    pipe: str,
    bucket: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/minutes/{bucket}/".format(
            pipe=quote(str(pipe), safe=""),
            bucket=quote(str(bucket), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> MinuteDetailOut | None:
    if response.status_code == 200:
        response_200 = MinuteDetailOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[MinuteDetailOut]:
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
) -> Response[MinuteDetailOut]:
    """Return the bins, the loss and the lags of one minute. A minute without messages has zeros.

    `minute` is the number of minutes since 1970-01-01T00:00Z.

    Args:
        pipe (str):
        bucket (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MinuteDetailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        bucket=bucket,
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
) -> MinuteDetailOut | None:
    """Return the bins, the loss and the lags of one minute. A minute without messages has zeros.

    `minute` is the number of minutes since 1970-01-01T00:00Z.

    Args:
        pipe (str):
        bucket (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MinuteDetailOut
    """

    return sync_detailed(
        pipe=pipe,
        bucket=bucket,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[MinuteDetailOut]:
    """Return the bins, the loss and the lags of one minute. A minute without messages has zeros.

    `minute` is the number of minutes since 1970-01-01T00:00Z.

    Args:
        pipe (str):
        bucket (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MinuteDetailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        bucket=bucket,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
) -> MinuteDetailOut | None:
    """Return the bins, the loss and the lags of one minute. A minute without messages has zeros.

    `minute` is the number of minutes since 1970-01-01T00:00Z.

    Args:
        pipe (str):
        bucket (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MinuteDetailOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            bucket=bucket,
            client=client,
        )
    ).parsed
