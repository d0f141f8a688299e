from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="EventTypeOut")


@_attrs_define
class EventTypeOut:
    """One event type of a source.

    Attributes:
        name (str): Empty if the source has one event type.
        subject (str): Name of the subject in the schema registry.
        subject_id (str): Id of the subject in `/api/v1/schemas/`.
        schema_type (str): Type of the schema: `AVRO` or `JSON`.
        newest_version (int): Version that JSON events must fit.
        deprecated_at (datetime.datetime | None): Time of the deprecation; null if it is not deprecated.
    """

    name: str
    subject: str
    subject_id: str
    schema_type: str
    newest_version: int
    deprecated_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        subject = self.subject

        subject_id = self.subject_id

        schema_type = self.schema_type

        newest_version = self.newest_version

        deprecated_at: None | str
        if isinstance(self.deprecated_at, datetime.datetime):
            deprecated_at = self.deprecated_at.isoformat()
        else:
            deprecated_at = self.deprecated_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "subject": subject,
                "subject_id": subject_id,
                "schema_type": schema_type,
                "newest_version": newest_version,
                "deprecated_at": deprecated_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        subject = d.pop("subject")

        subject_id = d.pop("subject_id")

        schema_type = d.pop("schema_type")

        newest_version = d.pop("newest_version")

        def _parse_deprecated_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deprecated_at_type_0 = datetime.datetime.fromisoformat(data)

                return deprecated_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        deprecated_at = _parse_deprecated_at(d.pop("deprecated_at"))

        event_type_out = cls(
            name=name,
            subject=subject,
            subject_id=subject_id,
            schema_type=schema_type,
            newest_version=newest_version,
            deprecated_at=deprecated_at,
        )

        event_type_out.additional_properties = d
        return event_type_out

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
