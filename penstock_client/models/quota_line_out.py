from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="QuotaLineOut")


@_attrs_define
class QuotaLineOut:
    """One quota of a tenant.

    Attributes:
        kind (str): * `events_per_s` - events_per_s
            * `bytes_per_s` - bytes_per_s
            * `in_flight_bytes` - in_flight_bytes
            * `process_weight` - process_weight
            * `pipes` - pipes
            * `destinations_per_pipe` - destinations_per_pipe
            * `topics` - topics
            * `partitions` - partitions
            * `api_keys` - api_keys
            * `live_tails` - live_tails
            * `live_tails_per_user` - live_tails_per_user
            * `subjects` - subjects
            * `schema_versions` - schema_versions
            * `replay_units_per_s` - replay_units_per_s
            * `table_sources` - table_sources
        limit (int): Limit of the quota.
        used (int | None): Null for quotas that limit no count.
        own (bool): True if staff set the limit for this tenant.
        unit (str): Unit of the quota.
        meaning (str): Meaning of the quota.
    """

    kind: str
    limit: int
    used: int | None
    own: bool
    unit: str
    meaning: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        limit = self.limit

        used: int | None
        used = self.used

        own = self.own

        unit = self.unit

        meaning = self.meaning

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "limit": limit,
                "used": used,
                "own": own,
                "unit": unit,
                "meaning": meaning,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        limit = d.pop("limit")

        def _parse_used(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        used = _parse_used(d.pop("used"))

        own = d.pop("own")

        unit = d.pop("unit")

        meaning = d.pop("meaning")

        quota_line_out = cls(
            kind=kind,
            limit=limit,
            used=used,
            own=own,
            unit=unit,
            meaning=meaning,
        )

        quota_line_out.additional_properties = d
        return quota_line_out

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
