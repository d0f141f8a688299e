from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="NewPortalLinkOut")


@_attrs_define
class NewPortalLinkOut:
    """New portal link, with its address.

    Attributes:
        id (str): Id of the link.
        label (str): Label, for people.
        may_redrive (bool): The customer may send failed events again.
        may_edit (bool): The customer may change the URL and secret, pause and resume.
        author (str): The user as whom the link acts.
        created_at (datetime.datetime): Time of creation.
        expires_at (datetime.datetime): Time after which it cannot be used.
        url (str): Address for the frame. Anyone with it can use it. It cannot be read again.
    """

    id: str
    label: str
    may_redrive: bool
    may_edit: bool
    author: str
    created_at: datetime.datetime
    expires_at: datetime.datetime
    url: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        label = self.label

        may_redrive = self.may_redrive

        may_edit = self.may_edit

        author = self.author

        created_at = self.created_at.isoformat()

        expires_at = self.expires_at.isoformat()

        url = self.url

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "label": label,
                "may_redrive": may_redrive,
                "may_edit": may_edit,
                "author": author,
                "created_at": created_at,
                "expires_at": expires_at,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        label = d.pop("label")

        may_redrive = d.pop("may_redrive")

        may_edit = d.pop("may_edit")

        author = d.pop("author")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        url = d.pop("url")

        new_portal_link_out = cls(
            id=id,
            label=label,
            may_redrive=may_redrive,
            may_edit=may_edit,
            author=author,
            created_at=created_at,
            expires_at=expires_at,
            url=url,
        )

        new_portal_link_out.additional_properties = d
        return new_portal_link_out

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
