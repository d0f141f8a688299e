from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.backfill_out import BackfillOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    backfill: str,
    *,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/backfills/{backfill}/cancel/".format(
            pipe=quote(str(pipe), safe=""),
            backfill=quote(str(backfill), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> BackfillOut | None:
    if response.status_code == 200:
        response_200 = BackfillOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[BackfillOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> Response[BackfillOut]:
    """Cancel a backfill that waits: no replay is started. One that has ended without a replay is returned
    as is.

    A backfill with a replay is refused: abort the replay instead. `retry/` takes the cancellation back.

    Args:
        pipe (str):
        backfill (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BackfillOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        backfill=backfill,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> BackfillOut | None:
    """Cancel a backfill that waits: no replay is started. One that has ended without a replay is returned
    as is.

    A backfill with a replay is refused: abort the replay instead. `retry/` takes the cancellation back.

    Args:
        pipe (str):
        backfill (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BackfillOut
    """

    return sync_detailed(
        pipe=pipe,
        backfill=backfill,
        client=client,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> Response[BackfillOut]:
    """Cancel a backfill that waits: no replay is started. One that has ended without a replay is returned
    as is.

    A backfill with a replay is refused: abort the replay instead. `retry/` takes the cancellation back.

    Args:
        pipe (str):
        backfill (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BackfillOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        backfill=backfill,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    backfill: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> BackfillOut | None:
    """Cancel a backfill that waits: no replay is started. One that has ended without a replay is returned
    as is.

    A backfill with a replay is refused: abort the replay instead. `retry/` takes the cancellation back.

    Args:
        pipe (str):
        backfill (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BackfillOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            backfill=backfill,
            client=client,
            idempotency_key=idempotency_key,
        )
    ).parsed
