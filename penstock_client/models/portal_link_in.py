from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="PortalLinkIn")


@_attrs_define
class PortalLinkIn:
    """Portal link to create.

    Attributes:
        label (str): For which customer it is.
        minutes (int | Unset): Until it expires. Default: 60.
        may_redrive (bool | Unset): The customer may send failed events again. Default: False.
        may_edit (bool | Unset): The customer may change the URL and the signing secret, pause and resume. Default:
            False.
        accent (str | Unset): Colour of your site, as `#rrggbb`.
    """

    label: str
    minutes: int | Unset = 60
    may_redrive: bool | Unset = False
    may_edit: bool | Unset = False
    accent: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        label = self.label

        minutes = self.minutes

        may_redrive = self.may_redrive

        may_edit = self.may_edit

        accent: str | Unset
        if isinstance(self.accent, Unset):
            accent = UNSET
        else:
            accent = self.accent

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "label": label,
            }
        )
        if minutes is not UNSET:
            field_dict["minutes"] = minutes
        if may_redrive is not UNSET:
            field_dict["may_redrive"] = may_redrive
        if may_edit is not UNSET:
            field_dict["may_edit"] = may_edit
        if accent is not UNSET:
            field_dict["accent"] = accent

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        label = d.pop("label")

        minutes = d.pop("minutes", UNSET)

        may_redrive = d.pop("may_redrive", UNSET)

        may_edit = d.pop("may_edit", UNSET)

        def _parse_accent(data: object) -> str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(str | Unset, data)

        accent = _parse_accent(d.pop("accent", UNSET))

        portal_link_in = cls(
            label=label,
            minutes=minutes,
            may_redrive=may_redrive,
            may_edit=may_edit,
            accent=accent,
        )

        portal_link_in.additional_properties = d
        return portal_link_in

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
