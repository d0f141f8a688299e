from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.schema_draft_in import SchemaDraftIn
from ...models.subject_version_out import SubjectVersionOut
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    body: SchemaDraftIn,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/schemas/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> SubjectVersionOut | None:
    if response.status_code == 200:
        response_200 = SubjectVersionOut.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = SubjectVersionOut.from_dict(response.json())

        return response_201

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
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[SubjectVersionOut]:
    """Register a schema as the next version of a subject, which is created if needed.

    Returns 200 and the existing version if the subject has this schema. Fails with `schema-
    incompatible` if the
    subject's compatibility level forbids the change: `errors` names each place, `detail` offers another
    subject.

    Args:
        idempotency_key (str | Unset):
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectVersionOut]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
    idempotency_key: str | Unset = UNSET,
) -> SubjectVersionOut | None:
    """Register a schema as the next version of a subject, which is created if needed.

    Returns 200 and the existing version if the subject has this schema. Fails with `schema-
    incompatible` if the
    subject's compatibility level forbids the change: `errors` names each place, `detail` offers another
    subject.

    Args:
        idempotency_key (str | Unset):
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubjectVersionOut
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
    idempotency_key: str | Unset = UNSET,
) -> Response[SubjectVersionOut]:
    """Register a schema as the next version of a subject, which is created if needed.

    Returns 200 and the existing version if the subject has this schema. Fails with `schema-
    incompatible` if the
    subject's compatibility level forbids the change: `errors` names each place, `detail` offers another
    subject.

    Args:
        idempotency_key (str | Unset):
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubjectVersionOut]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: SchemaDraftIn,
    idempotency_key: str | Unset = UNSET,
) -> SubjectVersionOut | None:
    """Register a schema as the next version of a subject, which is created if needed.

    Returns 200 and the existing version if the subject has this schema. Fails with `schema-
    incompatible` if the
    subject's compatibility level forbids the change: `errors` names each place, `detail` offers another
    subject.

    Args:
        idempotency_key (str | Unset):
        body (SchemaDraftIn): Schema to check or to register.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubjectVersionOut
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
