from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.webhook_out import WebhookOut
from typing import cast


def _get_kwargs(
    pipe: str,
    source: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/sources/{source}/webhook/".format(
            pipe=quote(str(pipe), safe=""),
            source=quote(str(source), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> WebhookOut | None:
    if response.status_code == 200:
        response_200 = WebhookOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[WebhookOut]:
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
) -> Response[WebhookOut]:
    """Return the webhook settings of a source. 404 if it has none.

    Args:
        pipe (str):
        source (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[WebhookOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
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
) -> WebhookOut | None:
    """Return the webhook settings of a source. 404 if it has none.

    Args:
        pipe (str):
        source (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        WebhookOut
    """

    return sync_detailed(
        pipe=pipe,
        source=source,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[WebhookOut]:
    """Return the webhook settings of a source. 404 if it has none.

    Args:
        pipe (str):
        source (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[WebhookOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
) -> WebhookOut | None:
    """Return the webhook settings of a source. 404 if it has none.

    Args:
        pipe (str):
        source (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        WebhookOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            source=source,
            client=client,
        )
    ).parsed
