from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.comparison_in import ComparisonIn
from ...models.comparison_out import ComparisonOut
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    body: ComparisonIn,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/compare/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ComparisonOut | None:
    if response.status_code == 200:
        response_200 = ComparisonOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ComparisonOut]:
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
    body: ComparisonIn,
) -> Response[ComparisonOut]:
    """Run the newest 100 events of a pipe through a draft and the live revision, and return what differs.

    Nothing is sent or stored. Each event counts once: same, changed, re-routed, rejected or no longer
    rejected.

    Args:
        pipe (str):
        body (ComparisonIn): Draft to compare with the live revision.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ComparisonOut]
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
    body: ComparisonIn,
) -> ComparisonOut | None:
    """Run the newest 100 events of a pipe through a draft and the live revision, and return what differs.

    Nothing is sent or stored. Each event counts once: same, changed, re-routed, rejected or no longer
    rejected.

    Args:
        pipe (str):
        body (ComparisonIn): Draft to compare with the live revision.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ComparisonOut
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
    body: ComparisonIn,
) -> Response[ComparisonOut]:
    """Run the newest 100 events of a pipe through a draft and the live revision, and return what differs.

    Nothing is sent or stored. Each event counts once: same, changed, re-routed, rejected or no longer
    rejected.

    Args:
        pipe (str):
        body (ComparisonIn): Draft to compare with the live revision.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ComparisonOut]
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
    body: ComparisonIn,
) -> ComparisonOut | None:
    """Run the newest 100 events of a pipe through a draft and the live revision, and return what differs.

    Nothing is sent or stored. Each event counts once: same, changed, re-routed, rejected or no longer
    rejected.

    Args:
        pipe (str):
        body (ComparisonIn): Draft to compare with the live revision.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ComparisonOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            body=body,
        )
    ).parsed
