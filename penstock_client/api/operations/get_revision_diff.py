from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.revision_diff_out import RevisionDiffOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    number: str,
    *,
    against: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["against"] = against

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipes/{pipe}/revisions/{number}/diff/".format(
            pipe=quote(str(pipe), safe=""),
            number=quote(str(number), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> RevisionDiffOut | None:
    if response.status_code == 200:
        response_200 = RevisionDiffOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[RevisionDiffOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    against: int | Unset = UNSET,
) -> Response[RevisionDiffOut]:
    """Return what a revision changed, line by line of its spec. The first revision is compared with
    nothing.

    Args:
        pipe (str):
        number (str):
        against (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RevisionDiffOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        number=number,
        against=against,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    against: int | Unset = UNSET,
) -> RevisionDiffOut | None:
    """Return what a revision changed, line by line of its spec. The first revision is compared with
    nothing.

    Args:
        pipe (str):
        number (str):
        against (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RevisionDiffOut
    """

    return sync_detailed(
        pipe=pipe,
        number=number,
        client=client,
        against=against,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    against: int | Unset = UNSET,
) -> Response[RevisionDiffOut]:
    """Return what a revision changed, line by line of its spec. The first revision is compared with
    nothing.

    Args:
        pipe (str):
        number (str):
        against (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RevisionDiffOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        number=number,
        against=against,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    number: str,
    *,
    client: AuthenticatedClient | Client,
    against: int | Unset = UNSET,
) -> RevisionDiffOut | None:
    """Return what a revision changed, line by line of its spec. The first revision is compared with
    nothing.

    Args:
        pipe (str):
        number (str):
        against (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RevisionDiffOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            number=number,
            client=client,
            against=against,
        )
    ).parsed
