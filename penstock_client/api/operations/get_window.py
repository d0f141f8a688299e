from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.current_out import CurrentOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    name: str,
    *,
    by: list[str] | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_by: list[str] | Unset = UNSET
    if not isinstance(by, Unset):
        json_by = by

    params["by"] = json_by

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/windows/{name}/".format(
            pipe=quote(str(pipe), safe=""),
            name=quote(str(name), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> CurrentOut | None:
    if response.status_code == 200:
        response_200 = CurrentOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[CurrentOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    by: list[str] | Unset = UNSET,
) -> Response[CurrentOut]:
    """Return the current values of a key's open windows. They include events after a few seconds.

    Args:
        pipe (str):
        name (str):
        by (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CurrentOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        by=by,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    by: list[str] | Unset = UNSET,
) -> CurrentOut | None:
    """Return the current values of a key's open windows. They include events after a few seconds.

    Args:
        pipe (str):
        name (str):
        by (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CurrentOut
    """

    return sync_detailed(
        pipe=pipe,
        name=name,
        client=client,
        by=by,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    by: list[str] | Unset = UNSET,
) -> Response[CurrentOut]:
    """Return the current values of a key's open windows. They include events after a few seconds.

    Args:
        pipe (str):
        name (str):
        by (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CurrentOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        by=by,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    by: list[str] | Unset = UNSET,
) -> CurrentOut | None:
    """Return the current values of a key's open windows. They include events after a few seconds.

    Args:
        pipe (str):
        name (str):
        by (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CurrentOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            name=name,
            client=client,
            by=by,
        )
    ).parsed
