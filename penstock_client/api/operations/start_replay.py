from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.replay_in import ReplayIn
from ...models.replay_out import ReplayOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    body: ReplayIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/replays/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ReplayOut | None:
    if response.status_code == 201:
        response_201 = ReplayOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ReplayOut]:
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
    body: ReplayIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[ReplayOut]:
    """Deliver the events of a range of ingest times once more, as long as the log has them.

    The steps and routes of the revision run again. Copies have the ids of the originals (`webhook-id`)
    and the
    header `penstock-replay`; they do not wait for other messages of their key. A copy that fails is not
    a dead
    letter. A tenant has one replay at a time. With `rehearsal`, nothing is sent: only the counts are
    computed.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ReplayIn): Replay to start: a range of ingest times, and optionally a selection of
            its events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ReplayOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ReplayIn,
    idempotency_key: str | Unset = UNSET,
) -> ReplayOut | None:
    """Deliver the events of a range of ingest times once more, as long as the log has them.

    The steps and routes of the revision run again. Copies have the ids of the originals (`webhook-id`)
    and the
    header `penstock-replay`; they do not wait for other messages of their key. A copy that fails is not
    a dead
    letter. A tenant has one replay at a time. With `rehearsal`, nothing is sent: only the counts are
    computed.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ReplayIn): Replay to start: a range of ingest times, and optionally a selection of
            its events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ReplayOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ReplayIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[ReplayOut]:
    """Deliver the events of a range of ingest times once more, as long as the log has them.

    The steps and routes of the revision run again. Copies have the ids of the originals (`webhook-id`)
    and the
    header `penstock-replay`; they do not wait for other messages of their key. A copy that fails is not
    a dead
    letter. A tenant has one replay at a time. With `rehearsal`, nothing is sent: only the counts are
    computed.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ReplayIn): Replay to start: a range of ingest times, and optionally a selection of
            its events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ReplayOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ReplayIn,
    idempotency_key: str | Unset = UNSET,
) -> ReplayOut | None:
    """Deliver the events of a range of ingest times once more, as long as the log has them.

    The steps and routes of the revision run again. Copies have the ids of the originals (`webhook-id`)
    and the
    header `penstock-replay`; they do not wait for other messages of their key. A copy that fails is not
    a dead
    letter. A tenant has one replay at a time. With `rehearsal`, nothing is sent: only the counts are
    computed.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ReplayIn): Replay to start: a range of ingest times, and optionally a selection of
            its events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ReplayOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
