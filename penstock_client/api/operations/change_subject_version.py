from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.patched_version_change_in import PatchedVersionChangeIn
from ...models.subject_version_out import SubjectVersionOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    subject: str,
    number: str,
    *,
    body: PatchedVersionChangeIn | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/schemas/{subject}/versions/{number}/".format(
            subject=quote(str(subject), safe=""),
            number=quote(str(number), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> SubjectVersionOut | None:
    if response.status_code == 200:
        response_200 = SubjectVersionOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[SubjectVersionOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    subject: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedVersionChangeIn | Unset = UNSET,
) -> Response[SubjectVersionOut]:
    """Deprecate a version, or end its deprecation. It is served, and compared with new versions, as
    before.

    Args:
        subject (str):
        number (str):
        body (PatchedVersionChangeIn | Unset): Changes of a version: only its deprecation. The
            schema is immutable.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectVersionOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        number=number,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    subject: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedVersionChangeIn | Unset = UNSET,
) -> SubjectVersionOut | None:
    """Deprecate a version, or end its deprecation. It is served, and compared with new versions, as
    before.

    Args:
        subject (str):
        number (str):
        body (PatchedVersionChangeIn | Unset): Changes of a version: only its deprecation. The
            schema is immutable.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubjectVersionOut
    """

    return sync_detailed(
        subject=subject,
        number=number,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    subject: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedVersionChangeIn | Unset = UNSET,
) -> Response[SubjectVersionOut]:
    """Deprecate a version, or end its deprecation. It is served, and compared with new versions, as
    before.

    Args:
        subject (str):
        number (str):
        body (PatchedVersionChangeIn | Unset): Changes of a version: only its deprecation. The
            schema is immutable.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectVersionOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        number=number,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    subject: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    body: PatchedVersionChangeIn | Unset = UNSET,
) -> SubjectVersionOut | None:
    """Deprecate a version, or end its deprecation. It is served, and compared with new versions, as
    before.

    Args:
        subject (str):
        number (str):
        body (PatchedVersionChangeIn | Unset): Changes of a version: only its deprecation. The
            schema is immutable.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubjectVersionOut
    """

    return (
        await asyncio_detailed(
            subject=subject,
            number=number,
            client=client,
            body=body,
        )
    ).parsed
