from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.patched_subject_change_in import PatchedSubjectChangeIn
from ...models.subject_out import SubjectOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    subject: str,
    *,
    body: PatchedSubjectChangeIn | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/schemas/{subject}/".format(
            subject=quote(str(subject), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> SubjectOut | None:
    if response.status_code == 200:
        response_200 = SubjectOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[SubjectOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedSubjectChangeIn | Unset = UNSET,
) -> Response[SubjectOut]:
    """Set compatibility level, owner or deprecation of a subject. A subject cannot be deleted.

    Args:
        subject (str):
        body (PatchedSubjectChangeIn | Unset): Changes of a subject. Omitted fields are unchanged.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedSubjectChangeIn | Unset = UNSET,
) -> SubjectOut | None:
    """Set compatibility level, owner or deprecation of a subject. A subject cannot be deleted.

    Args:
        subject (str):
        body (PatchedSubjectChangeIn | Unset): Changes of a subject. Omitted fields are unchanged.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubjectOut
    """

    return sync_detailed(
        subject=subject,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedSubjectChangeIn | Unset = UNSET,
) -> Response[SubjectOut]:
    """Set compatibility level, owner or deprecation of a subject. A subject cannot be deleted.

    Args:
        subject (str):
        body (PatchedSubjectChangeIn | Unset): Changes of a subject. Omitted fields are unchanged.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    subject: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedSubjectChangeIn | Unset = UNSET,
) -> SubjectOut | None:
    """Set compatibility level, owner or deprecation of a subject. A subject cannot be deleted.

    Args:
        subject (str):
        body (PatchedSubjectChangeIn | Unset): Changes of a subject. Omitted fields are unchanged.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubjectOut
    """

    return (
        await asyncio_detailed(
            subject=subject,
            client=client,
            body=body,
        )
    ).parsed
