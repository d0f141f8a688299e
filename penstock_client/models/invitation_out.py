from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="InvitationOut")


@_attrs_define
class InvitationOut:
    """An open invitation. Its link is only in the e-mail.

    Attributes:
        id (str): Id.
        email (str): Address that gets the link.
        role (str): * `viewer` - Viewer
            * `operator` - Operator
            * `editor` - Editor
            * `owner` - Owner
        sent_at (datetime.datetime): Time of the newest e-mail.
        mail_error (str): Reason why the newest e-mail was not sent; empty if it was.
        expires_at (datetime.datetime): Time after which it cannot be used.
        is_expired (bool): True if the link no longer works: send it again.
        invited_by (None | str | Unset): User who sent it; null if it was sent from the command line, or if the user was
            deleted.
    """

    id: str
    email: str
    role: str
    sent_at: datetime.datetime
    mail_error: str
    expires_at: datetime.datetime
    is_expired: bool
    invited_by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        email = self.email

        role = self.role

        sent_at = self.sent_at.isoformat()

        mail_error = self.mail_error

        expires_at = self.expires_at.isoformat()

        is_expired = self.is_expired

        invited_by: None | str | Unset
        if isinstance(self.invited_by, Unset):
            invited_by = UNSET
        else:
            invited_by = self.invited_by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "email": email,
                "role": role,
                "sent_at": sent_at,
                "mail_error": mail_error,
                "expires_at": expires_at,
                "is_expired": is_expired,
            }
        )
        if invited_by is not UNSET:
            field_dict["invited_by"] = invited_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        email = d.pop("email")

        role = d.pop("role")

        sent_at = datetime.datetime.fromisoformat(d.pop("sent_at"))

        mail_error = d.pop("mail_error")

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        is_expired = d.pop("is_expired")

        def _parse_invited_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        invited_by = _parse_invited_by(d.pop("invited_by", UNSET))

        invitation_out = cls(
            id=id,
            email=email,
            role=role,
            sent_at=sent_at,
            mail_error=mail_error,
            expires_at=expires_at,
            is_expired=is_expired,
            invited_by=invited_by,
        )

        invitation_out.additional_properties = d
        return invitation_out

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
