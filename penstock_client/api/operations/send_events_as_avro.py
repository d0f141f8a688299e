from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.event_ack_out import EventAckOut
from ...models.event_batch_out import EventBatchOut
from ...types import File, FileTypes
from ...types import UNSET, Unset
from io import BytesIO
from typing import cast


def _get_kwargs(
    *,
    body: File,
    content_encoding: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    ce_specversion: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(content_encoding, Unset):
        headers["Content-Encoding"] = content_encoding

    if not isinstance(traceparent, Unset):
        headers["traceparent"] = traceparent

    if not isinstance(ce_specversion, Unset):
        headers["ce-specversion"] = ce_specversion

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/events#as_avro",
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/avro"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> EventAckOut | EventBatchOut | EventBatchOut | None:
    if response.status_code == 202:

        def _parse_response_202(data: object) -> EventAckOut | EventBatchOut:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_202_type_0 = EventAckOut.from_dict(data)

                return response_202_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            response_202_type_1 = EventBatchOut.from_dict(data)

            return response_202_type_1

        response_202 = _parse_response_202(response.json())

        return response_202

    if response.status_code == 207:
        response_207 = EventBatchOut.from_dict(response.json())

        return response_207

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[EventAckOut | EventBatchOut | EventBatchOut]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: File,
    content_encoding: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    ce_specversion: str | Unset = UNSET,
) -> Response[EventAckOut | EventBatchOut | EventBatchOut]:
    """Send one event, or up to 10,000 in one request. 202 is the ACK: the events are stored and will be
    delivered. A batch has one result per event, in the order of the request; repeat those with status
    429 or 503 after Retry-After. An event that is repeated with the same id is delivered once if the
    pipe removes duplicates.

    Args:
        content_encoding (str | Unset):
        traceparent (str | Unset):
        ce_specversion (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[EventAckOut | EventBatchOut | EventBatchOut]
    """

    kwargs = _get_kwargs(
        body=body,
        content_encoding=content_encoding,
        traceparent=traceparent,
        ce_specversion=ce_specversion,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: File,
    content_encoding: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    ce_specversion: str | Unset = UNSET,
) -> EventAckOut | EventBatchOut | EventBatchOut | None:
    """Send one event, or up to 10,000 in one request. 202 is the ACK: the events are stored and will be
    delivered. A batch has one result per event, in the order of the request; repeat those with status
    429 or 503 after Retry-After. An event that is repeated with the same id is delivered once if the
    pipe removes duplicates.

    Args:
        content_encoding (str | Unset):
        traceparent (str | Unset):
        ce_specversion (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        EventAckOut | EventBatchOut | EventBatchOut
    """

    return sync_detailed(
        client=client,
        body=body,
        content_encoding=content_encoding,
        traceparent=traceparent,
        ce_specversion=ce_specversion,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: File,
    content_encoding: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    ce_specversion: str | Unset = UNSET,
) -> Response[EventAckOut | EventBatchOut | EventBatchOut]:
    """Send one event, or up to 10,000 in one request. 202 is the ACK: the events are stored and will be
    delivered. A batch has one result per event, in the order of the request; repeat those with status
    429 or 503 after Retry-After. An event that is repeated with the same id is delivered once if the
    pipe removes duplicates.

    Args:
        content_encoding (str | Unset):
        traceparent (str | Unset):
        ce_specversion (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[EventAckOut | EventBatchOut | EventBatchOut]
    """

    kwargs = _get_kwargs(
        body=body,
        content_encoding=content_encoding,
        traceparent=traceparent,
        ce_specversion=ce_specversion,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: File,
    content_encoding: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    ce_specversion: str | Unset = UNSET,
) -> EventAckOut | EventBatchOut | EventBatchOut | None:
    """Send one event, or up to 10,000 in one request. 202 is the ACK: the events are stored and will be
    delivered. A batch has one result per event, in the order of the request; repeat those with status
    429 or 503 after Retry-After. An event that is repeated with the same id is delivered once if the
    pipe removes duplicates.

    Args:
        content_encoding (str | Unset):
        traceparent (str | Unset):
        ce_specversion (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        EventAckOut | EventBatchOut | EventBatchOut
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            content_encoding=content_encoding,
            traceparent=traceparent,
            ce_specversion=ce_specversion,
        )
    ).parsed
