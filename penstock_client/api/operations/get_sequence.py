from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.sequence_out import SequenceOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    pipe: str,
    *,
    key: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["key"] = key

    params["kind"] = kind

    params["range"] = range_

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    params["source"] = source

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/sequence/".format(
            pipe=quote(str(pipe), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> SequenceOut | None:
    if response.status_code == 200:
        response_200 = SequenceOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[SequenceOut]:
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
    key: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[SequenceOut]:
    """Return the counts of each source with a sequence, and its breaks: gaps, reorderings, repeats.

    The newest 500 breaks of each kind are kept, for seven days. The counts include all.

    Args:
        pipe (str):
        key (str | Unset):
        kind (str | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SequenceOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        key=key,
        kind=kind,
        range_=range_,
        since=since,
        source=source,
        until=until,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    key: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> SequenceOut | None:
    """Return the counts of each source with a sequence, and its breaks: gaps, reorderings, repeats.

    The newest 500 breaks of each kind are kept, for seven days. The counts include all.

    Args:
        pipe (str):
        key (str | Unset):
        kind (str | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SequenceOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        key=key,
        kind=kind,
        range_=range_,
        since=since,
        source=source,
        until=until,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    key: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[SequenceOut]:
    """Return the counts of each source with a sequence, and its breaks: gaps, reorderings, repeats.

    The newest 500 breaks of each kind are kept, for seven days. The counts include all.

    Args:
        pipe (str):
        key (str | Unset):
        kind (str | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SequenceOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        key=key,
        kind=kind,
        range_=range_,
        since=since,
        source=source,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    key: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    range_: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    source: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> SequenceOut | None:
    """Return the counts of each source with a sequence, and its breaks: gaps, reorderings, repeats.

    The newest 500 breaks of each kind are kept, for seven days. The counts include all.

    Args:
        pipe (str):
        key (str | Unset):
        kind (str | Unset):
        range_ (str | Unset):
        since (datetime.datetime | Unset):
        source (str | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SequenceOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            key=key,
            kind=kind,
            range_=range_,
            since=since,
            source=source,
            until=until,
        )
    ).parsed
