from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="NewCatalogueLinkOut")


@_attrs_define
class NewCatalogueLinkOut:
    """New link, with its address.

    Attributes:
        id (str): Id of the link.
        label (str): Label, for people.
        created_at (datetime.datetime): Time of creation.
        expires_at (datetime.datetime): Time after which it cannot be used.
        url (str): Anyone with it can read the catalogue. It cannot be read again.
        author (None | str | Unset): User who created it; null if the user was deleted or Penstock created it.
    """

    id: str
    label: str
    created_at: datetime.datetime
    expires_at: datetime.datetime
    url: str
    author: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        label = self.label

        created_at = self.created_at.isoformat()

        expires_at = self.expires_at.isoformat()

        url = self.url

        author: None | str | Unset
        if isinstance(self.author, Unset):
            author = UNSET
        else:
            author = self.author

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "label": label,
                "created_at": created_at,
                "expires_at": expires_at,
                "url": url,
            }
        )
        if author is not UNSET:
            field_dict["author"] = author

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        label = d.pop("label")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        url = d.pop("url")

        def _parse_author(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        author = _parse_author(d.pop("author", UNSET))

        new_catalogue_link_out = cls(
            id=id,
            label=label,
            created_at=created_at,
            expires_at=expires_at,
            url=url,
            author=author,
        )

        new_catalogue_link_out.additional_properties = d
        return new_catalogue_link_out

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
