from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.shadow_value_out import ShadowValueOut


T = TypeVar("T", bound="ShadowSampleOut")


@_attrs_define
class ShadowSampleOut:
    """Message that is not equal.

    Attributes:
        result (str): * `different` - different
            * `only_live` - only_live
            * `only_draft` - only_draft
            * `not_sent` - not_sent
        destination (str): Name of the destination in the spec.
        position (str): Position of its event, `<generation>-<partition>-<offset>`.
        child (int): Number of the message within an exploded event; 0 if it is not exploded.
        url (str): Path of the message in this API.
        reason (str): Why the draft does not send it; empty if it does.
        fields (list[ShadowValueOut]): Fields that differ.
    """

    result: str
    destination: str
    position: str
    child: int
    url: str
    reason: str
    fields: list[ShadowValueOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.shadow_value_out import ShadowValueOut  # noqa: PLC0415

        result = self.result

        destination = self.destination

        position = self.position

        child = self.child

        url = self.url

        reason = self.reason

        fields = []
        for fields_item_data in self.fields:
            fields_item = fields_item_data.to_dict()
            fields.append(fields_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "result": result,
                "destination": destination,
                "position": position,
                "child": child,
                "url": url,
                "reason": reason,
                "fields": fields,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shadow_value_out import ShadowValueOut  # noqa: PLC0415

        d = dict(src_dict)
        result = d.pop("result")

        destination = d.pop("destination")

        position = d.pop("position")

        child = d.pop("child")

        url = d.pop("url")

        reason = d.pop("reason")

        fields = []
        _fields = d.pop("fields")
        for fields_item_data in _fields:
            fields_item = ShadowValueOut.from_dict(fields_item_data)

            fields.append(fields_item)

        shadow_sample_out = cls(
            result=result,
            destination=destination,
            position=position,
            child=child,
            url=url,
            reason=reason,
            fields=fields,
        )

        shadow_sample_out.additional_properties = d
        return shadow_sample_out

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
