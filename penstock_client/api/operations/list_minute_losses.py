from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.minute_losses_out import MinuteLossesOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    bucket: str,
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
        "url": "/api/v1/pipes/{pipe}/minutes/{bucket}/losses/".format(
            pipe=quote(str(pipe), safe=""),
            bucket=quote(str(bucket), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> MinuteLossesOut | None:
    if response.status_code == 200:
        response_200 = MinuteLossesOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[MinuteLossesOut]:
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
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> Response[MinuteLossesOut]:
    """Return the loss of a minute by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses of a minute are final when it is sealed.

    Args:
        pipe (str):
        bucket (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MinuteLossesOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        bucket=bucket,
        limit=limit,
        offset=offset,
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
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> MinuteLossesOut | None:
    """Return the loss of a minute by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses of a minute are final when it is sealed.

    Args:
        pipe (str):
        bucket (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MinuteLossesOut
    """

    return sync_detailed(
        pipe=pipe,
        bucket=bucket,
        client=client,
        limit=limit,
        offset=offset,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> Response[MinuteLossesOut]:
    """Return the loss of a minute by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses of a minute are final when it is sealed.

    Args:
        pipe (str):
        bucket (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MinuteLossesOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        bucket=bucket,
        limit=limit,
        offset=offset,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    bucket: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = UNSET,
    offset: int | Unset = UNSET,
) -> MinuteLossesOut | None:
    """Return the loss of a minute by node and end to end, and the lost messages with the nodes that saw
    them.

    The losses of a minute are final when it is sealed.

    Args:
        pipe (str):
        bucket (str):
        limit (int | Unset):
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MinuteLossesOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            bucket=bucket,
            client=client,
            limit=limit,
            offset=offset,
        )
    ).parsed
