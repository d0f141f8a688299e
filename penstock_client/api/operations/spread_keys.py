from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.revision_out import RevisionOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/spread-keys/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> RevisionOut | None:
    if response.status_code == 201:
        response_201 = RevisionOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[RevisionOut]:
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
    idempotency_key: str | Unset = UNSET,
) -> Response[RevisionOut]:
    """Publish a revision that distributes the events of each key over all partitions, as a hot partition
    needs.

    It sets `spread_key` at each source whose events have keys, and takes all keys at once. Fails with
    `order-needed` if a destination keeps the order of each key, with `unchanged` if no key is left to
    spread. To
    undo it, publish the earlier spec again.

    Args:
        pipe (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RevisionOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
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
    idempotency_key: str | Unset = UNSET,
) -> RevisionOut | None:
    """Publish a revision that distributes the events of each key over all partitions, as a hot partition
    needs.

    It sets `spread_key` at each source whose events have keys, and takes all keys at once. Fails with
    `order-needed` if a destination keeps the order of each key, with `unchanged` if no key is left to
    spread. To
    undo it, publish the earlier spec again.

    Args:
        pipe (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RevisionOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> Response[RevisionOut]:
    """Publish a revision that distributes the events of each key over all partitions, as a hot partition
    needs.

    It sets `spread_key` at each source whose events have keys, and takes all keys at once. Fails with
    `order-needed` if a destination keeps the order of each key, with `unchanged` if no key is left to
    spread. To
    undo it, publish the earlier spec again.

    Args:
        pipe (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RevisionOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    idempotency_key: str | Unset = UNSET,
) -> RevisionOut | None:
    """Publish a revision that distributes the events of each key over all partitions, as a hot partition
    needs.

    It sets `spread_key` at each source whose events have keys, and takes all keys at once. Fails with
    `order-needed` if a destination keeps the order of each key, with `unchanged` if no key is left to
    spread. To
    undo it, publish the earlier spec again.

    Args:
        pipe (str):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RevisionOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            idempotency_key=idempotency_key,
        )
    ).parsed
