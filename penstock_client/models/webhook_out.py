from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="WebhookOut")


@_attrs_define
class WebhookOut:
    """Webhook settings of a source. Secrets are never returned.

    Attributes:
        preset (str): * `github` - github
            * `stripe` - stripe
            * `shopify` - shopify
            * `slack` - slack
            * `twilio` - twilio
            * `paddle` - paddle
            * `pagerduty` - pagerduty
            * `square` - square
            * `twitch` - twitch
            * `standard-webhooks` - standard-webhooks
            * `cloudevents` - cloudevents
            * `none` - none
        headers (list[str]): Names of request headers that events keep as `meta.headers`, besides those of the preset;
            at most 20.
        preset_headers (list[str]): Names of request headers that the preset keeps.
        secrets (int): Number of secrets that are valid: 0 to 2.
        id_from (str): Where the sender names the delivery; empty: nowhere.
        type_from (str): Where the sender names the type of an event.
        version (int): Grows with each change.
        changed_at (datetime.datetime): Time of the last change.
    """

    preset: str
    headers: list[str]
    preset_headers: list[str]
    secrets: int
    id_from: str
    type_from: str
    version: int
    changed_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        preset = self.preset

        headers = self.headers

        preset_headers = self.preset_headers

        secrets = self.secrets

        id_from = self.id_from

        type_from = self.type_from

        version = self.version

        changed_at = self.changed_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "preset": preset,
                "headers": headers,
                "preset_headers": preset_headers,
                "secrets": secrets,
                "id_from": id_from,
                "type_from": type_from,
                "version": version,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        preset = d.pop("preset")

        headers = cast(list[str], d.pop("headers"))

        preset_headers = cast(list[str], d.pop("preset_headers"))

        secrets = d.pop("secrets")

        id_from = d.pop("id_from")

        type_from = d.pop("type_from")

        version = d.pop("version")

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        webhook_out = cls(
            preset=preset,
            headers=headers,
            preset_headers=preset_headers,
            secrets=secrets,
            id_from=id_from,
            type_from=type_from,
            version=version,
            changed_at=changed_at,
        )

        webhook_out.additional_properties = d
        return webhook_out

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
