from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="PatchedSubjectChangeIn")


@_attrs_define
class PatchedSubjectChangeIn:
    """Changes of a subject. Omitted fields are unchanged.

    Attributes:
        compatibility (None | str | Unset): Null: the tenant's default applies.

            * `NONE` - NONE
            * `BACKWARD` - BACKWARD
            * `BACKWARD_TRANSITIVE` - BACKWARD_TRANSITIVE
            * `FORWARD` - FORWARD
            * `FORWARD_TRANSITIVE` - FORWARD_TRANSITIVE
            * `FULL` - FULL
            * `FULL_TRANSITIVE` - FULL_TRANSITIVE
        owner (str | Unset): Owner of the subject, for people: a team or an address.
        deprecated (bool | Unset): A deprecated subject accepts no new version.
    """

    compatibility: None | str | Unset = UNSET
    owner: str | Unset = UNSET
    deprecated: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        compatibility: None | str | Unset
        if isinstance(self.compatibility, Unset):
            compatibility = UNSET
        else:
            compatibility = self.compatibility

        owner = self.owner

        deprecated = self.deprecated

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if compatibility is not UNSET:
            field_dict["compatibility"] = compatibility
        if owner is not UNSET:
            field_dict["owner"] = owner
        if deprecated is not UNSET:
            field_dict["deprecated"] = deprecated

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_compatibility(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        compatibility = _parse_compatibility(d.pop("compatibility", UNSET))

        owner = d.pop("owner", UNSET)

        deprecated = d.pop("deprecated", UNSET)

        patched_subject_change_in = cls(
            compatibility=compatibility,
            owner=owner,
            deprecated=deprecated,
        )

        patched_subject_change_in.additional_properties = d
        return patched_subject_change_in

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
