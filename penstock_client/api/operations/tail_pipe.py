from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.tail_out import TailOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    after: str | Unset = UNSET,
    filter_: str | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(last_event_id, Unset):
        headers["Last-Event-ID"] = last_event_id

    params: dict[str, Any] = {}

    params["after"] = after

    params["filter"] = filter_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/tail/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> TailOut | None:
    if response.status_code == 200:
        response_200 = TailOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[TailOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    filter_: str | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> Response[TailOut]:
    """Return the newest copies of the pipe's peek steps; for `Accept: text/event-stream`, stream new ones.

    Each `copy` event has a copy, and its cursor as `id`. A `standing` event each second has the cursor
    and the
    counts of copies that were shown, left out (over 20 per second) or missed. The stream ends after two
    minutes;
    connect again with `Last-Event-ID` to continue after the last event. `gap` is true if copies in
    between are no
    longer kept. A user and a tenant may have as many streams open as their quotas allow.

    Args:
        pipe (str):
        after (str | Unset):
        filter_ (str | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        after=after,
        filter_=filter_,
        last_event_id=last_event_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    filter_: str | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> TailOut | None:
    """Return the newest copies of the pipe's peek steps; for `Accept: text/event-stream`, stream new ones.

    Each `copy` event has a copy, and its cursor as `id`. A `standing` event each second has the cursor
    and the
    counts of copies that were shown, left out (over 20 per second) or missed. The stream ends after two
    minutes;
    connect again with `Last-Event-ID` to continue after the last event. `gap` is true if copies in
    between are no
    longer kept. A user and a tenant may have as many streams open as their quotas allow.

    Args:
        pipe (str):
        after (str | Unset):
        filter_ (str | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TailOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        after=after,
        filter_=filter_,
        last_event_id=last_event_id,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    filter_: str | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> Response[TailOut]:
    """Return the newest copies of the pipe's peek steps; for `Accept: text/event-stream`, stream new ones.

    Each `copy` event has a copy, and its cursor as `id`. A `standing` event each second has the cursor
    and the
    counts of copies that were shown, left out (over 20 per second) or missed. The stream ends after two
    minutes;
    connect again with `Last-Event-ID` to continue after the last event. `gap` is true if copies in
    between are no
    longer kept. A user and a tenant may have as many streams open as their quotas allow.

    Args:
        pipe (str):
        after (str | Unset):
        filter_ (str | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TailOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        after=after,
        filter_=filter_,
        last_event_id=last_event_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    after: str | Unset = UNSET,
    filter_: str | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> TailOut | None:
    """Return the newest copies of the pipe's peek steps; for `Accept: text/event-stream`, stream new ones.

    Each `copy` event has a copy, and its cursor as `id`. A `standing` event each second has the cursor
    and the
    counts of copies that were shown, left out (over 20 per second) or missed. The stream ends after two
    minutes;
    connect again with `Last-Event-ID` to continue after the last event. `gap` is true if copies in
    between are no
    longer kept. A user and a tenant may have as many streams open as their quotas allow.

    Args:
        pipe (str):
        after (str | Unset):
        filter_ (str | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TailOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            after=after,
            filter_=filter_,
            last_event_id=last_event_id,
        )
    ).parsed
