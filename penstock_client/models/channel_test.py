from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="ChannelTest")


@_attrs_define
class ChannelTest:
    """Body of a test message of a channel.

    Attributes:
        type_ (str): Occasion of the message.
        tenant (str): Id of the tenant.
        channel (str): Id of the channel.
        at (datetime.datetime): Time of the message.
        url (str): Page of the channels.
    """

    type_: str
    tenant: str
    channel: str
    at: datetime.datetime
    url: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        tenant = self.tenant

        channel = self.channel

        at = self.at.isoformat()

        url = self.url

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
                "tenant": tenant,
                "channel": channel,
                "at": at,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        type_ = d.pop("type")

        tenant = d.pop("tenant")

        channel = d.pop("channel")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        url = d.pop("url")

        channel_test = cls(
            type_=type_,
            tenant=tenant,
            channel=channel,
            at=at,
            url=url,
        )

        channel_test.additional_properties = d
        return channel_test

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
