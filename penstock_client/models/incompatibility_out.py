from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="IncompatibilityOut")


@_attrs_define
class IncompatibilityOut:
    """One place at which a reader could not read what a writer wrote.

    Attributes:
        version (int): Earlier version of the subject.
        pointer (str): JSON pointer into the reader's schema.
        reader (str): Reader's type at that place.
        writer (str): Writer's type at that place.
        reason (str): Stable code of the reason.
        message (str): Text for people.
    """

    version: int
    pointer: str
    reader: str
    writer: str
    reason: str
    message: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        pointer = self.pointer

        reader = self.reader

        writer = self.writer

        reason = self.reason

        message = self.message

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "pointer": pointer,
                "reader": reader,
                "writer": writer,
                "reason": reason,
                "message": message,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        version = d.pop("version")

        pointer = d.pop("pointer")

        reader = d.pop("reader")

        writer = d.pop("writer")

        reason = d.pop("reason")

        message = d.pop("message")

        incompatibility_out = cls(
            version=version,
            pointer=pointer,
            reader=reader,
            writer=writer,
            reason=reason,
            message=message,
        )

        incompatibility_out.additional_properties = d
        return incompatibility_out

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
