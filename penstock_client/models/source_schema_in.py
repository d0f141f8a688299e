from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.source_schema_in_schema import SourceSchemaInSchema


T = TypeVar("T", bound="SourceSchemaIn")


@_attrs_define
class SourceSchemaIn:
    """Next version of a source's schema.

    Attributes:
        schema (SourceSchemaInSchema): JSON Schema, draft 2020-12, at most 64 kB. `$ref` may only point to `#/$defs/` of
            the same document.
    """

    schema: SourceSchemaInSchema
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.source_schema_in_schema import SourceSchemaInSchema  # noqa: PLC0415

        schema = self.schema.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "schema": schema,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.source_schema_in_schema import SourceSchemaInSchema  # noqa: PLC0415

        d = dict(src_dict)
        schema = SourceSchemaInSchema.from_dict(d.pop("schema"))

        source_schema_in = cls(
            schema=schema,
        )

        source_schema_in.additional_properties = d
        return source_schema_in

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
