from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.schema_text_out_versions_item import SchemaTextOutVersionsItem


T = TypeVar("T", bound="SchemaTextOut")


@_attrs_define
class SchemaTextOut:
    """A schema, with each version that has it.

    Attributes:
        tenant (str): Id of the tenant.
        schema_id (int): Id of the schema in the wire API of the registry.
        fingerprint (str): SHA-256 of the schema in its normal form, in hexadecimal digits.
        type_ (str): Type of the schema: `AVRO` or `JSON`.
        name (str): Name.
        schema (str): Text of the schema.
        references (Any): Schemas that it refers to by name, with subject and version.
        versions (list[SchemaTextOutVersionsItem]): Return subject and number of each version.
    """

    tenant: str
    schema_id: int
    fingerprint: str
    type_: str
    name: str
    schema: str
    references: Any
    versions: list[SchemaTextOutVersionsItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.schema_text_out_versions_item import SchemaTextOutVersionsItem  # noqa: PLC0415

        tenant = self.tenant

        schema_id = self.schema_id

        fingerprint = self.fingerprint

        type_ = self.type_

        name = self.name

        schema = self.schema

        references = self.references

        versions = []
        for versions_item_data in self.versions:
            versions_item = versions_item_data.to_dict()
            versions.append(versions_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "schema_id": schema_id,
                "fingerprint": fingerprint,
                "type": type_,
                "name": name,
                "schema": schema,
                "references": references,
                "versions": versions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.schema_text_out_versions_item import SchemaTextOutVersionsItem  # noqa: PLC0415

        d = dict(src_dict)
        tenant = d.pop("tenant")

        schema_id = d.pop("schema_id")

        fingerprint = d.pop("fingerprint")

        type_ = d.pop("type")

        name = d.pop("name")

        schema = d.pop("schema")

        references = d.pop("references")

        versions = []
        _versions = d.pop("versions")
        for versions_item_data in _versions:
            versions_item = SchemaTextOutVersionsItem.from_dict(versions_item_data)

            versions.append(versions_item)

        schema_text_out = cls(
            tenant=tenant,
            schema_id=schema_id,
            fingerprint=fingerprint,
            type_=type_,
            name=name,
            schema=schema,
            references=references,
            versions=versions,
        )

        schema_text_out.additional_properties = d
        return schema_text_out

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
