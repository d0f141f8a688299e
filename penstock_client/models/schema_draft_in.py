from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.schema_reference_in import SchemaReferenceIn


T = TypeVar("T", bound="SchemaDraftIn")


@_attrs_define
class SchemaDraftIn:
    """Schema to check or to register.

    Attributes:
        subject (str): Name of the subject in the schema registry.
        schema (Any): The schema as JSON, or as a string that contains JSON.
        tenant (str | Unset): Needed only if you have several tenants.
        type_ (str | Unset): * `AVRO` - AVRO
            * `JSON` - JSON Default: 'AVRO'.
        references (list[SchemaReferenceIn] | Unset): Schemas that it refers to by name.
        owner (str | Unset): Owner of a new subject. Default: your user name.
    """

    subject: str
    schema: Any
    tenant: str | Unset = UNSET
    type_: str | Unset = "AVRO"
    references: list[SchemaReferenceIn] | Unset = UNSET
    owner: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.schema_reference_in import SchemaReferenceIn  # noqa: PLC0415

        subject = self.subject

        schema = self.schema

        tenant = self.tenant

        type_ = self.type_

        references: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.references, Unset):
            references = []
            for references_item_data in self.references:
                references_item = references_item_data.to_dict()
                references.append(references_item)

        owner = self.owner

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "subject": subject,
                "schema": schema,
            }
        )
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if type_ is not UNSET:
            field_dict["type"] = type_
        if references is not UNSET:
            field_dict["references"] = references
        if owner is not UNSET:
            field_dict["owner"] = owner

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.schema_reference_in import SchemaReferenceIn  # noqa: PLC0415

        d = dict(src_dict)
        subject = d.pop("subject")

        schema = d.pop("schema")

        tenant = d.pop("tenant", UNSET)

        type_ = d.pop("type", UNSET)

        _references = d.pop("references", UNSET)
        references: list[SchemaReferenceIn] | Unset = UNSET
        if _references is not UNSET:
            references = []
            for references_item_data in _references:
                references_item = SchemaReferenceIn.from_dict(references_item_data)

                references.append(references_item)

        owner = d.pop("owner", UNSET)

        schema_draft_in = cls(
            subject=subject,
            schema=schema,
            tenant=tenant,
            type_=type_,
            references=references,
            owner=owner,
        )

        schema_draft_in.additional_properties = d
        return schema_draft_in

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
