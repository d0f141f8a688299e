from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="OutboundRequestOut")


@_attrs_define
class OutboundRequestOut:
    """Request that would be sent, without secrets; with a `cause`, the message would be dead-lettered instead.

    Attributes:
        destination (str): Name of the destination in the spec.
        id (str): Id.
        method (str): HTTP method.
        url (str): URL.
        headers (list[str]): Header lines of the request; secrets are shown as ***.
        body (str): Body as text.
        note (str): How the real request differs if it is sent as part of a batch.
        cause (str): Why the message would be dead-lettered instead, such as row; empty if it would be sent.
    """

    destination: str
    id: str
    method: str
    url: str
    headers: list[str]
    body: str
    note: str
    cause: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        destination = self.destination

        id = self.id

        method = self.method

        url = self.url

        headers = self.headers

        body = self.body

        note = self.note

        cause = self.cause

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "destination": destination,
                "id": id,
                "method": method,
                "url": url,
                "headers": headers,
                "body": body,
                "note": note,
                "cause": cause,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        destination = d.pop("destination")

        id = d.pop("id")

        method = d.pop("method")

        url = d.pop("url")

        headers = cast(list[str], d.pop("headers"))

        body = d.pop("body")

        note = d.pop("note")

        cause = d.pop("cause")

        outbound_request_out = cls(
            destination=destination,
            id=id,
            method=method,
            url=url,
            headers=headers,
            body=body,
            note=note,
            cause=cause,
        )

        outbound_request_out.additional_properties = d
        return outbound_request_out

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
