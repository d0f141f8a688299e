from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="SubjectVersionOut")


@_attrs_define
class SubjectVersionOut:
    """One immutable version of a subject.

    Attributes:
        subject (str): Name of the subject in the schema registry.
        number (int): Number, counted from 1.
        schema_id (int): Id on the wire, unique in the tenant.
        fingerprint (str): SHA-256 of the canonical form, hex.
        type_ (str): Type of the schema: `AVRO` or `JSON`.
        schema (str): The schema as it was registered.
        references (Any): Schemas that it refers to by name, with subject and version.
        created_at (datetime.datetime): Time of creation.
        deprecated_at (datetime.datetime | None): Time of the deprecation; null if it is not deprecated.
        author (None | str | Unset): User who created it; null if the user was deleted or Penstock created it.
    """

    subject: str
    number: int
    schema_id: int
    fingerprint: str
    type_: str
    schema: str
    references: Any
    created_at: datetime.datetime
    deprecated_at: datetime.datetime | None
    author: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        subject = self.subject

        number = self.number

        schema_id = self.schema_id

        fingerprint = self.fingerprint

        type_ = self.type_

        schema = self.schema

        references = self.references

        created_at = self.created_at.isoformat()

        deprecated_at: None | str
        if isinstance(self.deprecated_at, datetime.datetime):
            deprecated_at = self.deprecated_at.isoformat()
        else:
            deprecated_at = self.deprecated_at

        author: None | str | Unset
        if isinstance(self.author, Unset):
            author = UNSET
        else:
            author = self.author

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "subject": subject,
                "number": number,
                "schema_id": schema_id,
                "fingerprint": fingerprint,
                "type": type_,
                "schema": schema,
                "references": references,
                "created_at": created_at,
                "deprecated_at": deprecated_at,
            }
        )
        if author is not UNSET:
            field_dict["author"] = author

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        subject = d.pop("subject")

        number = d.pop("number")

        schema_id = d.pop("schema_id")

        fingerprint = d.pop("fingerprint")

        type_ = d.pop("type")

        schema = d.pop("schema")

        references = d.pop("references")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

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

        def _parse_author(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        author = _parse_author(d.pop("author", UNSET))

        subject_version_out = cls(
            subject=subject,
            number=number,
            schema_id=schema_id,
            fingerprint=fingerprint,
            type_=type_,
            schema=schema,
            references=references,
            created_at=created_at,
            deprecated_at=deprecated_at,
            author=author,
        )

        subject_version_out.additional_properties = d
        return subject_version_out

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
