from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="SentRequestOut")


@_attrs_define
class SentRequestOut:
    """Request as it is sent, without secrets.

    Attributes:
        method (str): HTTP method.
        url (str): URL.
        headers (list[str]): Header lines of the request; secrets are shown as ***.
        body (str): Body as text.
        note (str): How the sent request differs from this one; empty if it does not.
    """

    method: str
    url: str
    headers: list[str]
    body: str
    note: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        method = self.method

        url = self.url

        headers = self.headers

        body = self.body

        note = self.note

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "method": method,
                "url": url,
                "headers": headers,
                "body": body,
                "note": note,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        method = d.pop("method")

        url = d.pop("url")

        headers = cast(list[str], d.pop("headers"))

        body = d.pop("body")

        note = d.pop("note")

        sent_request_out = cls(
            method=method,
            url=url,
            headers=headers,
            body=body,
            note=note,
        )

        sent_request_out.additional_properties = d
        return sent_request_out

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
