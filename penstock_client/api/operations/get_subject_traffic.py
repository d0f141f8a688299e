from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.traffic_out import TrafficOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    subject: str,
    *,
    range_: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["range"] = range_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/schemas/{subject}/traffic/".format(
            subject=quote(str(subject), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> TrafficOut | None:
    if response.status_code == 200:
        response_200 = TrafficOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[TrafficOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> Response[TrafficOut]:
    """Return how many events ingest checked with each version, and how many it rejected, by source.

    Counts are of the last 24 hours, or of `range`, and kept for 31 days. Events that ingest had counted
    but not
    reported when its process was killed are missing here; the pipe's minutes have them.

    Args:
        subject (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TrafficOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        range_=range_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> TrafficOut | None:
    """Return how many events ingest checked with each version, and how many it rejected, by source.

    Counts are of the last 24 hours, or of `range`, and kept for 31 days. Events that ingest had counted
    but not
    reported when its process was killed are missing here; the pipe's minutes have them.

    Args:
        subject (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TrafficOut
    """

    return sync_detailed(
        subject=subject,
        client=client,
        range_=range_,
    ).parsed


async def asyncio_detailed(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> Response[TrafficOut]:
    """Return how many events ingest checked with each version, and how many it rejected, by source.

    Counts are of the last 24 hours, or of `range`, and kept for 31 days. Events that ingest had counted
    but not
    reported when its process was killed are missing here; the pipe's minutes have them.

    Args:
        subject (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TrafficOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        range_=range_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
) -> TrafficOut | None:
    """Return how many events ingest checked with each version, and how many it rejected, by source.

    Counts are of the last 24 hours, or of `range`, and kept for 31 days. Events that ingest had counted
    but not
    reported when its process was killed are missing here; the pipe's minutes have them.

    Args:
        subject (str):
        range_ (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TrafficOut
    """

    return (
        await asyncio_detailed(
            subject=subject,
            client=client,
            range_=range_,
        )
    ).parsed
