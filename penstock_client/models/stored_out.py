from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.stored_out_headers import StoredOutHeaders


T = TypeVar("T", bound="StoredOut")


@_attrs_define
class StoredOut:
    """A stored message; a long body is cut.

    Attributes:
        headers (StoredOutHeaders): Headers of the record by name.
        body (str): Body as text.
        body_bytes (int): Size of the body in bytes.
    """

    headers: StoredOutHeaders
    body: str
    body_bytes: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.stored_out_headers import StoredOutHeaders  # noqa: PLC0415

        headers = self.headers.to_dict()

        body = self.body

        body_bytes = self.body_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "headers": headers,
                "body": body,
                "body_bytes": body_bytes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.stored_out_headers import StoredOutHeaders  # noqa: PLC0415

        d = dict(src_dict)
        headers = StoredOutHeaders.from_dict(d.pop("headers"))

        body = d.pop("body")

        body_bytes = d.pop("body_bytes")

        stored_out = cls(
            headers=headers,
            body=body,
            body_bytes=body_bytes,
        )

        stored_out.additional_properties = d
        return stored_out

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
