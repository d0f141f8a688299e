from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="ChannelIn")


@_attrs_define
class ChannelIn:
    """Notification channel to add.

    Attributes:
        kind (str): * `mail` - E-mail
            * `webhook` - Webhook
            * `slack` - Slack
            * `teams` - Microsoft Teams
            * `discord` - Discord
            * `pagerduty` - PagerDuty
            * `pagerduty-eu` - PagerDuty (EU)
        target (str): An e-mail address, the URL of a webhook or of a chat's incoming webhook, or a PagerDuty key.
    """

    kind: str
    target: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        target = self.target

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "target": target,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        target = d.pop("target")

        channel_in = cls(
            kind=kind,
            target=target,
        )

        channel_in.additional_properties = d
        return channel_in

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
