from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="DestinationTestOut")


@_attrs_define
class DestinationTestOut:
    """A test request, with its result once `state` is `done`.

    Attributes:
        id (str): Id of the test request.
        tenant (str): Id of the tenant.
        pipe (None | str): Null for a destination that is not saved.
        destination (str): Name of the destination in the spec.
        state (str): * `asked` - Asked
            * `sending` - Sending
            * `done` - Done
        created_at (datetime.datetime): Time of creation.
        url (str): URL.
        headers (Any): Header lines that are sent, without id, time, signature and authentication.
        body (str): Body that is sent.
        status (int): HTTP status of the response; 0 without a response.
        outcome (str): Outcome that the response would have for a message.
        cause (str): Cause of a failure; empty without one.
        reason (str): Reason of a failure, for people; empty without one.
        address (str): IP address to which the connection was made; empty if there was none.
        dns_us (int): Time of the name look-up in microseconds.
        connect_us (int): Time for the TCP connection in microseconds.
        tls_us (int): Time of the TLS handshake in microseconds.
        first_byte_us (int): Time until the first byte of the response in microseconds.
        total_us (int): Duration in microseconds.
        answer (str): Beginning of the response body.
    """

    id: str
    tenant: str
    pipe: None | str
    destination: str
    state: str
    created_at: datetime.datetime
    url: str
    headers: Any
    body: str
    status: int
    outcome: str
    cause: str
    reason: str
    address: str
    dns_us: int
    connect_us: int
    tls_us: int
    first_byte_us: int
    total_us: int
    answer: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        tenant = self.tenant

        pipe: None | str
        pipe = self.pipe

        destination = self.destination

        state = self.state

        created_at = self.created_at.isoformat()

        url = self.url

        headers = self.headers

        body = self.body

        status = self.status

        outcome = self.outcome

        cause = self.cause

        reason = self.reason

        address = self.address

        dns_us = self.dns_us

        connect_us = self.connect_us

        tls_us = self.tls_us

        first_byte_us = self.first_byte_us

        total_us = self.total_us

        answer = self.answer

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "tenant": tenant,
                "pipe": pipe,
                "destination": destination,
                "state": state,
                "created_at": created_at,
                "url": url,
                "headers": headers,
                "body": body,
                "status": status,
                "outcome": outcome,
                "cause": cause,
                "reason": reason,
                "address": address,
                "dns_us": dns_us,
                "connect_us": connect_us,
                "tls_us": tls_us,
                "first_byte_us": first_byte_us,
                "total_us": total_us,
                "answer": answer,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        tenant = d.pop("tenant")

        def _parse_pipe(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        pipe = _parse_pipe(d.pop("pipe"))

        destination = d.pop("destination")

        state = d.pop("state")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        url = d.pop("url")

        headers = d.pop("headers")

        body = d.pop("body")

        status = d.pop("status")

        outcome = d.pop("outcome")

        cause = d.pop("cause")

        reason = d.pop("reason")

        address = d.pop("address")

        dns_us = d.pop("dns_us")

        connect_us = d.pop("connect_us")

        tls_us = d.pop("tls_us")

        first_byte_us = d.pop("first_byte_us")

        total_us = d.pop("total_us")

        answer = d.pop("answer")

        destination_test_out = cls(
            id=id,
            tenant=tenant,
            pipe=pipe,
            destination=destination,
            state=state,
            created_at=created_at,
            url=url,
            headers=headers,
            body=body,
            status=status,
            outcome=outcome,
            cause=cause,
            reason=reason,
            address=address,
            dns_us=dns_us,
            connect_us=connect_us,
            tls_us=tls_us,
            first_byte_us=first_byte_us,
            total_us=total_us,
            answer=answer,
        )

        destination_test_out.additional_properties = d
        return destination_test_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
