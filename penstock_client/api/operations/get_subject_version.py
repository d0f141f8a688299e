from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.subject_version_out import SubjectVersionOut
from typing import cast


def _get_kwargs(
    subject: str,
    number: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/schemas/{subject}/versions/{number}/".format(
            subject=quote(str(subject), safe=""),
            number=quote(str(number), safe=""),
        ),
    }

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
) -> Response[SubjectVersionOut]:
    """Return a version of a subject.

    Args:
        subject (str):
        number (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectVersionOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        number=number,
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
) -> SubjectVersionOut | None:
    """Return a version of a subject.

    Args:
        subject (str):
        number (str):

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
    ).parsed


async def asyncio_detailed(
    subject: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[SubjectVersionOut]:
    """Return a version of a subject.

    Args:
        subject (str):
        number (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectVersionOut]
    """

    kwargs = _get_kwargs(
        subject=subject,
        number=number,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    subject: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
) -> SubjectVersionOut | None:
    """Return a version of a subject.

    Args:
        subject (str):
        number (str):

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
        )
    ).parsed
