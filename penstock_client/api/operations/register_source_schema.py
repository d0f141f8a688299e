from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.new_source_schema_out import NewSourceSchemaOut
from ...models.source_schema_in import SourceSchemaIn
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    source: str,
    *,
    body: SourceSchemaIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/sources/{source}/schemas/".format(
            pipe=quote(str(pipe), safe=""),
            source=quote(str(source), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> NewSourceSchemaOut | None:
    if response.status_code == 200:
        response_200 = NewSourceSchemaOut.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = NewSourceSchemaOut.from_dict(response.json())

        return response_201

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[NewSourceSchemaOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
    body: SourceSchemaIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewSourceSchemaOut]:
    """Register the next version of a schema. Returns 200 and the newest version if the two are the same.

    Fails with `schema-breaking` if the new version could refuse an event that the previous one accepts;
    `errors`
    names each field.

    Args:
        pipe (str):
        source (str):
        idempotency_key (str | Unset):
        body (SourceSchemaIn): Next version of a source's schema.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewSourceSchemaOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
    body: SourceSchemaIn,
    idempotency_key: str | Unset = UNSET,
) -> NewSourceSchemaOut | None:
    """Register the next version of a schema. Returns 200 and the newest version if the two are the same.

    Fails with `schema-breaking` if the new version could refuse an event that the previous one accepts;
    `errors`
    names each field.

    Args:
        pipe (str):
        source (str):
        idempotency_key (str | Unset):
        body (SourceSchemaIn): Next version of a source's schema.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewSourceSchemaOut
    """

    return sync_detailed(
        pipe=pipe,
        source=source,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
    body: SourceSchemaIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[NewSourceSchemaOut]:
    """Register the next version of a schema. Returns 200 and the newest version if the two are the same.

    Fails with `schema-breaking` if the new version could refuse an event that the previous one accepts;
    `errors`
    names each field.

    Args:
        pipe (str):
        source (str):
        idempotency_key (str | Unset):
        body (SourceSchemaIn): Next version of a source's schema.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewSourceSchemaOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
    body: SourceSchemaIn,
    idempotency_key: str | Unset = UNSET,
) -> NewSourceSchemaOut | None:
    """Register the next version of a schema. Returns 200 and the newest version if the two are the same.

    Fails with `schema-breaking` if the new version could refuse an event that the previous one accepts;
    `errors`
    names each field.

    Args:
        pipe (str):
        source (str):
        idempotency_key (str | Unset):
        body (SourceSchemaIn): Next version of a source's schema.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewSourceSchemaOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            source=source,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
