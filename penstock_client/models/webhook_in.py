from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="WebhookIn")


@_attrs_define
class WebhookIn:
    """Webhook settings of a source.

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
        secret (str | Unset): Signing secret that the sender shows. Empty keeps the stored ones, if the preset is the
            same. Until a source has one, ingest returns 503 to the sender. Default: ''.
        headers (list[str] | Unset): Names of request headers that events keep as `meta.headers`, besides those of the
            preset; at most 20.
        keep_previous (bool | Unset): The secret before the newest one stays valid too. Send `false` when the sender has
            changed over. Default: True.
    """

    preset: str
    secret: str | Unset = ""
    headers: list[str] | Unset = UNSET
    keep_previous: bool | Unset = True
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        preset = self.preset

        secret = self.secret

        headers: list[str] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers

        keep_previous = self.keep_previous

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "preset": preset,
            }
        )
        if secret is not UNSET:
            field_dict["secret"] = secret
        if headers is not UNSET:
            field_dict["headers"] = headers
        if keep_previous is not UNSET:
            field_dict["keep_previous"] = keep_previous

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        preset = d.pop("preset")

        secret = d.pop("secret", UNSET)

        headers = cast(list[str], d.pop("headers", UNSET))

        keep_previous = d.pop("keep_previous", UNSET)

        webhook_in = cls(
            preset=preset,
            secret=secret,
            headers=headers,
            keep_previous=keep_previous,
        )

        webhook_in.additional_properties = d
        return webhook_in

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
