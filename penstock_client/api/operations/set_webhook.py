from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.webhook_in import WebhookIn
from ...models.webhook_out import WebhookOut
from typing import cast


def _get_kwargs(
    pipe: str,
    source: str,
    *,
    body: WebhookIn,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/pipes/{pipe}/sources/{source}/webhook/".format(
            pipe=quote(str(pipe), safe=""),
            source=quote(str(source), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
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
    body: WebhookIn,
) -> Response[WebhookOut]:
    """Set the sender of a source and its signing secret. Ingest applies them within seconds.

    Then create the URL for the sender with `POST .../keys/` and `"use": "url"`.

    Args:
        pipe (str):
        source (str):
        body (WebhookIn): Webhook settings of a source.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[WebhookOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
        body=body,
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
    body: WebhookIn,
) -> WebhookOut | None:
    """Set the sender of a source and its signing secret. Ingest applies them within seconds.

    Then create the URL for the sender with `POST .../keys/` and `"use": "url"`.

    Args:
        pipe (str):
        source (str):
        body (WebhookIn): Webhook settings of a source.

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
        body=body,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
    body: WebhookIn,
) -> Response[WebhookOut]:
    """Set the sender of a source and its signing secret. Ingest applies them within seconds.

    Then create the URL for the sender with `POST .../keys/` and `"use": "url"`.

    Args:
        pipe (str):
        source (str):
        body (WebhookIn): Webhook settings of a source.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[WebhookOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        source=source,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    source: str,
    *,
    client: AuthenticatedClient | Client,
    body: WebhookIn,
) -> WebhookOut | None:
    """Set the sender of a source and its signing secret. Ingest applies them within seconds.

    Then create the URL for the sender with `POST .../keys/` and `"use": "url"`.

    Args:
        pipe (str):
        source (str):
        body (WebhookIn): Webhook settings of a source.

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
            body=body,
        )
    ).parsed
