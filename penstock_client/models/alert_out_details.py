from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="AlertOutDetails")


@_attrs_define
class AlertOutDetails:
    """`common`: fields that the failing messages share and other events lack. `failing` and `delayed`: `attempts` and
    `failed` of the last minutes, and `waiting` messages, the oldest since `oldest_at`. `lost`: the loss by `nodes` and
    `end_to_end` (`due`, `lost`, `percent`), and the first lost `messages`. `hot-partition`: the `partition`, its
    `share_percent` of the events, the `fair_percent` of an even share, events `per_s`, `lag` in messages, and the
    `keys` with the most of its events (`key`, `share_percent`), masked if the pipe masks them; if none could be read,
    `keys_unknown` says why. `numeric-drift`: the `fields` that changed most, each with `source`, `field`, `since`,
    `words`, its `stability_index` and `threshold`, the `basis` of the comparison, the numbers of `values` and
    `usual_values`, `quantiles` and `usual_quantiles` (`p10` to `p90`), and `ranges` (`low`, `high`, `percent`,
    `usual_percent`); `more` counts further fields. `rejecting`: the most frequent `rejections` of the last `window_min`
    minutes, each with `id`, `source`, `event_type`, `code`, `reason` and `detail`, `pointer`, `sender` and its number
    of `events`; `more` counts further ones. `sequence-gap`: the newest `gaps` of the last `window_min` minutes, each
    with `source`, `key` (masked if the pipe masks it), `summary`, how many numbers are `missing`, the
    `missing_numbers`, the numbers `previous` and `number` around it, and `position`, `bucket` and `at` of the event
    after it; `more` counts further ones.

    """

    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        alert_out_details = cls()

        alert_out_details.additional_properties = d
        return alert_out_details

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
