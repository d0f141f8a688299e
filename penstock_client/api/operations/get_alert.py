from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.alert_out import AlertOut
from typing import cast


def _get_kwargs(
    pipe: str,
    alert: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/alerts/{alert}/".format(
            pipe=quote(str(pipe), safe=""),
            alert=quote(str(alert), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AlertOut | None:
    if response.status_code == 200:
        response_200 = AlertOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[AlertOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    alert: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[AlertOut]:
    """Return an alert with a sample failure.

    Args:
        pipe (str):
        alert (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AlertOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        alert=alert,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    alert: str,
    *,
    client: AuthenticatedClient | Client,
) -> AlertOut | None:
    """Return an alert with a sample failure.

    Args:
        pipe (str):
        alert (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AlertOut
    """

    return sync_detailed(
        pipe=pipe,
        alert=alert,
        client=client,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    alert: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[AlertOut]:
    """Return an alert with a sample failure.

    Args:
        pipe (str):
        alert (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AlertOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        alert=alert,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    alert: str,
    *,
    client: AuthenticatedClient | Client,
) -> AlertOut | None:
    """Return an alert with a sample failure.

    Args:
        pipe (str):
        alert (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AlertOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            alert=alert,
            client=client,
        )
    ).parsed
