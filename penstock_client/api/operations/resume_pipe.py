from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.pipe_out import PipeOut
from ...models.resume_in import ResumeIn
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    pipe: str,
    *,
    body: ResumeIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipes/{pipe}/resume/".format(
            pipe=quote(str(pipe), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> PipeOut | None:
    if response.status_code == 200:
        response_200 = PipeOut.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[PipeOut]:
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
    body: ResumeIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[PipeOut]:
    """Resume a pipe. Held messages are sent automatically, in order.

    A pipe that Penstock paused because its steps fail (`dead-rate`) needs a corrected revision that is
    live. It
    stays paused while one held message runs through the steps, and resumes automatically if that
    passes.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ResumeIn | Unset): Resumption of a pipe. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PipeOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ResumeIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> PipeOut | None:
    """Resume a pipe. Held messages are sent automatically, in order.

    A pipe that Penstock paused because its steps fail (`dead-rate`) needs a corrected revision that is
    live. It
    stays paused while one held message runs through the steps, and resumes automatically if that
    passes.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ResumeIn | Unset): Resumption of a pipe. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PipeOut
    """

    return sync_detailed(
        pipe=pipe,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ResumeIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[PipeOut]:
    """Resume a pipe. Held messages are sent automatically, in order.

    A pipe that Penstock paused because its steps fail (`dead-rate`) needs a corrected revision that is
    live. It
    stays paused while one held message runs through the steps, and resumes automatically if that
    passes.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ResumeIn | Unset): Resumption of a pipe. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PipeOut]
    """

    kwargs = _get_kwargs(
        pipe=pipe,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pipe: str,
    *,
    client: AuthenticatedClient | Client,
    body: ResumeIn | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> PipeOut | None:
    """Resume a pipe. Held messages are sent automatically, in order.

    A pipe that Penstock paused because its steps fail (`dead-rate`) needs a corrected revision that is
    live. It
    stays paused while one held message runs through the steps, and resumes automatically if that
    passes.

    Args:
        pipe (str):
        idempotency_key (str | Unset):
        body (ResumeIn | Unset): Resumption of a pipe. The body may be empty.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PipeOut
    """

    return (
        await asyncio_detailed(
            pipe=pipe,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
