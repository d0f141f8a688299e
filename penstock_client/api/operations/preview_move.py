from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.chosen_in import ChosenIn
from ...models.preview_out import PreviewOut
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    body: ChosenIn,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/moves/preview/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> PreviewOut | None:
    if response.status_code == 200:
        response_200 = PreviewOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[PreviewOut]:
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
    body: ChosenIn,
) -> Response[PreviewOut]:
    """Count the messages that match a selection now. Changes nothing.

    Args:
        pipe (str):
        body (ChosenIn): Selection of messages; an omitted field matches all. Times are whole
            minutes: `since` <= time < `until`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PreviewOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChosenIn,
) -> PreviewOut | None:
    """Count the messages that match a selection now. Changes nothing.

    Args:
        pipe (str):
        body (ChosenIn): Selection of messages; an omitted field matches all. Times are whole
            minutes: `since` <= time < `until`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PreviewOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChosenIn,
) -> Response[PreviewOut]:
    """Count the messages that match a selection now. Changes nothing.

    Args:
        pipe (str):
        body (ChosenIn): Selection of messages; an omitted field matches all. Times are whole
            minutes: `since` <= time < `until`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PreviewOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChosenIn,
) -> PreviewOut | None:
    """Count the messages that match a selection now. Changes nothing.

    Args:
        pipe (str):
        body (ChosenIn): Selection of messages; an omitted field matches all. Times are whole
            minutes: `since` <= time < `until`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PreviewOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            body=body,
        )
    ).parsed
