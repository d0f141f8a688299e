from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.member_out import MemberOut
from ...models.patched_role_in import PatchedRoleIn
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    tenant: str,
    username: str,
    *,
    body: PatchedRoleIn | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/tenants/{tenant}/members/{username}/".format(
            tenant=quote(str(tenant), safe=""),
            username=quote(str(username), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> MemberOut | None:
    if response.status_code == 200:
        response_200 = MemberOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[MemberOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    tenant: str,
    username: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedRoleIn | Unset = UNSET,
) -> Response[MemberOut]:
    """Change the role of a member. The last owner who can sign in keeps their role.

    Args:
        tenant (str):
        username (str):
        body (PatchedRoleIn | Unset): The new role of a member.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MemberOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        username=username,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    username: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedRoleIn | Unset = UNSET,
) -> MemberOut | None:
    """Change the role of a member. The last owner who can sign in keeps their role.

    Args:
        tenant (str):
        username (str):
        body (PatchedRoleIn | Unset): The new role of a member.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MemberOut
    """

    return sync_detailed(
        tenant=tenant,
        username=username,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    username: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedRoleIn | Unset = UNSET,
) -> Response[MemberOut]:
    """Change the role of a member. The last owner who can sign in keeps their role.

    Args:
        tenant (str):
        username (str):
        body (PatchedRoleIn | Unset): The new role of a member.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MemberOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        username=username,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    username: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedRoleIn | Unset = UNSET,
) -> MemberOut | None:
    """Change the role of a member. The last owner who can sign in keeps their role.

    Args:
        tenant (str):
        username (str):
        body (PatchedRoleIn | Unset): The new role of a member.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MemberOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            username=username,
            client=client,
            body=body,
        )
    ).parsed
