from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.credential_in import CredentialIn
from ...models.destination_out import DestinationOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    name: str,
    *,
    body: CredentialIn | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/pipes/{pipe}/destinations/{name}/credential/".format(
            pipe=quote(str(pipe), safe=""),
            name=quote(str(name), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DestinationOut | None:
    if response.status_code == 200:
        response_200 = DestinationOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[DestinationOut]:
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
    body: CredentialIn | Unset = UNSET,
) -> Response[DestinationOut]:
    """Store the credential, encrypted. It cannot be read again.

    Args:
        pipe (str):
        name (str):
        body (CredentialIn | Unset): Secret of a destination's authentication; the required fields
            depend on its kind.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        body=body,
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
    body: CredentialIn | Unset = UNSET,
) -> DestinationOut | None:
    """Store the credential, encrypted. It cannot be read again.

    Args:
        pipe (str):
        name (str):
        body (CredentialIn | Unset): Secret of a destination's authentication; the required fields
            depend on its kind.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationOut
    """

    return sync_detailed(
        pipe=pipe,
        name=name,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: CredentialIn | Unset = UNSET,
) -> Response[DestinationOut]:
    """Store the credential, encrypted. It cannot be read again.

    Args:
        pipe (str):
        name (str):
        body (CredentialIn | Unset): Secret of a destination's authentication; the required fields
            depend on its kind.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DestinationOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        name=name,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: CredentialIn | Unset = UNSET,
) -> DestinationOut | None:
    """Store the credential, encrypted. It cannot be read again.

    Args:
        pipe (str):
        name (str):
        body (CredentialIn | Unset): Secret of a destination's authentication; the required fields
            depend on its kind.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DestinationOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            name=name,
            client=client,
            body=body,
        )
    ).parsed
