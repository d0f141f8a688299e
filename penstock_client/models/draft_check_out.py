from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.incompatibility_out import IncompatibilityOut


T = TypeVar("T", bound="DraftCheckOut")


@_attrs_define
class DraftCheckOut:
    """Result of checking a schema for a subject. Nothing is stored.

    Attributes:
        compatible (bool): True if the schema can be registered under the subject.
        level (str): * `NONE` - NONE
            * `BACKWARD` - BACKWARD
            * `BACKWARD_TRANSITIVE` - BACKWARD_TRANSITIVE
            * `FORWARD` - FORWARD
            * `FORWARD_TRANSITIVE` - FORWARD_TRANSITIVE
            * `FULL` - FULL
            * `FULL_TRANSITIVE` - FULL_TRANSITIVE
        fingerprint (str): SHA-256 of the schema in its normal form, in hexadecimal digits.
        name (str): Full name of a named Avro type, else empty.
        incompatibilities (list[IncompatibilityOut]): Places at which the schema is incompatible with an earlier
            version.
        suggested_subject (None | str): Subject under which an incompatible schema can be registered.
    """

    compatible: bool
    level: str
    fingerprint: str
    name: str
    incompatibilities: list[IncompatibilityOut]
    suggested_subject: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.incompatibility_out import IncompatibilityOut  # noqa: PLC0415

        compatible = self.compatible

        level = self.level

        fingerprint = self.fingerprint

        name = self.name

        incompatibilities = []
        for incompatibilities_item_data in self.incompatibilities:
            incompatibilities_item = incompatibilities_item_data.to_dict()
            incompatibilities.append(incompatibilities_item)

        suggested_subject: None | str
        suggested_subject = self.suggested_subject

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "compatible": compatible,
                "level": level,
                "fingerprint": fingerprint,
                "name": name,
                "incompatibilities": incompatibilities,
                "suggested_subject": suggested_subject,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.incompatibility_out import IncompatibilityOut  # noqa: PLC0415

        d = dict(src_dict)
        compatible = d.pop("compatible")

        level = d.pop("level")

        fingerprint = d.pop("fingerprint")

        name = d.pop("name")

        incompatibilities = []
        _incompatibilities = d.pop("incompatibilities")
        for incompatibilities_item_data in _incompatibilities:
            incompatibilities_item = IncompatibilityOut.from_dict(incompatibilities_item_data)

            incompatibilities.append(incompatibilities_item)

        def _parse_suggested_subject(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        suggested_subject = _parse_suggested_subject(d.pop("suggested_subject"))

        draft_check_out = cls(
            compatible=compatible,
            level=level,
            fingerprint=fingerprint,
            name=name,
            incompatibilities=incompatibilities,
            suggested_subject=suggested_subject,
        )

        draft_check_out.additional_properties = d
        return draft_check_out

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
