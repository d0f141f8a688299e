from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.get_asyncapi_response_200 import GetAsyncapiResponse200
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    tenant: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/asyncapi/",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> GetAsyncapiResponse200 | None:
    if response.status_code == 200:
        response_200 = GetAsyncapiResponse200.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[GetAsyncapiResponse200]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    tenant: str | Unset = UNSET,
) -> Response[GetAsyncapiResponse200]:
    """Return the event types of a tenant as an AsyncAPI 3.0 document: a channel for each source that has
    any.

    Payloads are the newest versions of the subjects, as JSON Schema or Avro.

    Args:
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[GetAsyncapiResponse200]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    tenant: str | Unset = UNSET,
) -> GetAsyncapiResponse200 | None:
    """Return the event types of a tenant as an AsyncAPI 3.0 document: a channel for each source that has
    any.

    Payloads are the newest versions of the subjects, as JSON Schema or Avro.

    Args:
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        GetAsyncapiResponse200
    """

    return sync_detailed(
        client=client,
        tenant=tenant,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    tenant: str | Unset = UNSET,
) -> Response[GetAsyncapiResponse200]:
    """Return the event types of a tenant as an AsyncAPI 3.0 document: a channel for each source that has
    any.

    Payloads are the newest versions of the subjects, as JSON Schema or Avro.

    Args:
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[GetAsyncapiResponse200]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    tenant: str | Unset = UNSET,
) -> GetAsyncapiResponse200 | None:
    """Return the event types of a tenant as an AsyncAPI 3.0 document: a channel for each source that has
    any.

    Payloads are the newest versions of the subjects, as JSON Schema or Avro.

    Args:
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        GetAsyncapiResponse200
    """

    return (
        await asyncio_detailed(
            client=client,
            tenant=tenant,
        )
    ).parsed
