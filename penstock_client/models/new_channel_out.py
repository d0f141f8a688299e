from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="NewChannelOut")


@_attrs_define
class NewChannelOut:
    """A new channel. The `secret` of a webhook is returned only here; it is empty for other kinds.

    Attributes:
        id (str): Id of the channel.
        kind (str): * `mail` - E-mail
            * `webhook` - Webhook
            * `slack` - Slack
            * `teams` - Microsoft Teams
            * `discord` - Discord
            * `pagerduty` - PagerDuty
            * `pagerduty-eu` - PagerDuty (EU)
        target (str): Address or URL. Of chats and pagers, whose target is a secret: the host and the last characters.
        is_active (bool): False for an e-mail address that is not confirmed and gets no alerts.
        confirmed_at (datetime.datetime | None): Null for other kinds, which need no confirmation.
        confirmation_asked_at (datetime.datetime | None): Time of the newest request for a confirmation e-mail.
        test_due_at (datetime.datetime | None): Set while a test message is being sent; null once it has its result.
        tested_at (datetime.datetime | None): When the newest test message was accepted or failed; null while it is
            being sent.
        test_error (str): Why the newest test message failed; empty if it was accepted.
        created_at (datetime.datetime): Time of creation.
        secret (str): Signing secret of a webhook, which cannot be read again; empty for an e-mail address.
    """

    id: str
    kind: str
    target: str
    is_active: bool
    confirmed_at: datetime.datetime | None
    confirmation_asked_at: datetime.datetime | None
    test_due_at: datetime.datetime | None
    tested_at: datetime.datetime | None
    test_error: str
    created_at: datetime.datetime
    secret: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        kind = self.kind

        target = self.target

        is_active = self.is_active

        confirmed_at: None | str
        if isinstance(self.confirmed_at, datetime.datetime):
            confirmed_at = self.confirmed_at.isoformat()
        else:
            confirmed_at = self.confirmed_at

        confirmation_asked_at: None | str
        if isinstance(self.confirmation_asked_at, datetime.datetime):
            confirmation_asked_at = self.confirmation_asked_at.isoformat()
        else:
            confirmation_asked_at = self.confirmation_asked_at

        test_due_at: None | str
        if isinstance(self.test_due_at, datetime.datetime):
            test_due_at = self.test_due_at.isoformat()
        else:
            test_due_at = self.test_due_at

        tested_at: None | str
        if isinstance(self.tested_at, datetime.datetime):
            tested_at = self.tested_at.isoformat()
        else:
            tested_at = self.tested_at

        test_error = self.test_error

        created_at = self.created_at.isoformat()

        secret = self.secret

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "kind": kind,
                "target": target,
                "is_active": is_active,
                "confirmed_at": confirmed_at,
                "confirmation_asked_at": confirmation_asked_at,
                "test_due_at": test_due_at,
                "tested_at": tested_at,
                "test_error": test_error,
                "created_at": created_at,
                "secret": secret,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        kind = d.pop("kind")

        target = d.pop("target")

        is_active = d.pop("is_active")

        def _parse_confirmed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                confirmed_at_type_0 = datetime.datetime.fromisoformat(data)

                return confirmed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        confirmed_at = _parse_confirmed_at(d.pop("confirmed_at"))

        def _parse_confirmation_asked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                confirmation_asked_at_type_0 = datetime.datetime.fromisoformat(data)

                return confirmation_asked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        confirmation_asked_at = _parse_confirmation_asked_at(d.pop("confirmation_asked_at"))

        def _parse_test_due_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                test_due_at_type_0 = datetime.datetime.fromisoformat(data)

                return test_due_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        test_due_at = _parse_test_due_at(d.pop("test_due_at"))

        def _parse_tested_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tested_at_type_0 = datetime.datetime.fromisoformat(data)

                return tested_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        tested_at = _parse_tested_at(d.pop("tested_at"))

        test_error = d.pop("test_error")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        secret = d.pop("secret")

        new_channel_out = cls(
            id=id,
            kind=kind,
            target=target,
            is_active=is_active,
            confirmed_at=confirmed_at,
            confirmation_asked_at=confirmation_asked_at,
            test_due_at=test_due_at,
            tested_at=tested_at,
            test_error=test_error,
            created_at=created_at,
            secret=secret,
        )

        new_channel_out.additional_properties = d
        return new_channel_out

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
