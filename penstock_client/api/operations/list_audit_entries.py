from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.audit_entry_page_out import AuditEntryPageOut
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    tenant: str,
    *,
    action: str | Unset = UNSET,
    actor: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    pipe: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["action"] = action

    params["actor"] = actor

    params["cursor"] = cursor

    params["limit"] = limit

    params["pipe"] = pipe

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/tenants/{tenant}/audit-log/".format(
            tenant=quote(str(tenant), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AuditEntryPageOut | None:
    if response.status_code == 200:
        response_200 = AuditEntryPageOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[AuditEntryPageOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    action: str | Unset = UNSET,
    actor: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    pipe: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[AuditEntryPageOut]:
    """List who changed what in a tenant, newest first. For owners.

    An entry is part of the transaction of its change, and is never changed. Entries are deleted after
    400 days,
    unless the installation has another retention. Secrets and bodies of messages are not part of any
    entry.

    Args:
        tenant (str):
        action (str | Unset):
        actor (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):
        pipe (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditEntryPageOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        action=action,
        actor=actor,
        cursor=cursor,
        limit=limit,
        pipe=pipe,
        since=since,
        until=until,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    action: str | Unset = UNSET,
    actor: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    pipe: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> AuditEntryPageOut | None:
    """List who changed what in a tenant, newest first. For owners.

    An entry is part of the transaction of its change, and is never changed. Entries are deleted after
    400 days,
    unless the installation has another retention. Secrets and bodies of messages are not part of any
    entry.

    Args:
        tenant (str):
        action (str | Unset):
        actor (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):
        pipe (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditEntryPageOut
    """

    return sync_detailed(
        tenant=tenant,
        client=client,
        action=action,
        actor=actor,
        cursor=cursor,
        limit=limit,
        pipe=pipe,
        since=since,
        until=until,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    action: str | Unset = UNSET,
    actor: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    pipe: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> Response[AuditEntryPageOut]:
    """List who changed what in a tenant, newest first. For owners.

    An entry is part of the transaction of its change, and is never changed. Entries are deleted after
    400 days,
    unless the installation has another retention. Secrets and bodies of messages are not part of any
    entry.

    Args:
        tenant (str):
        action (str | Unset):
        actor (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):
        pipe (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditEntryPageOut]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        action=action,
        actor=actor,
        cursor=cursor,
        limit=limit,
        pipe=pipe,
        since=since,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    action: str | Unset = UNSET,
    actor: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    pipe: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> AuditEntryPageOut | None:
    """List who changed what in a tenant, newest first. For owners.

    An entry is part of the transaction of its change, and is never changed. Entries are deleted after
    400 days,
    unless the installation has another retention. Secrets and bodies of messages are not part of any
    entry.

    Args:
        tenant (str):
        action (str | Unset):
        actor (str | Unset):
        cursor (str | Unset):
        limit (int | Unset):
        pipe (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditEntryPageOut
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            action=action,
            actor=actor,
            cursor=cursor,
            limit=limit,
            pipe=pipe,
            since=since,
            until=until,
        )
    ).parsed
