from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="BreakerOut")


@_attrs_define
class BreakerOut:
    """Circuit breaker of a destination: the worst state in any lane.

    Attributes:
        state (str): * `closed` - closed
            * `half-open` - half-open
            * `open` - open
        until (datetime.datetime | None): Time of the first possible probe.
        reason (str): Why it is open.
        slow_lane (bool): True if the slow lane sends to the destination, so that it delays no other.
    """

    state: str
    until: datetime.datetime | None
    reason: str
    slow_lane: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        state = self.state

        until: None | str
        if isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        reason = self.reason

        slow_lane = self.slow_lane

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "state": state,
                "until": until,
                "reason": reason,
                "slow_lane": slow_lane,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        state = d.pop("state")

        def _parse_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                until_type_0 = datetime.datetime.fromisoformat(data)

                return until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        until = _parse_until(d.pop("until"))

        reason = d.pop("reason")

        slow_lane = d.pop("slow_lane")

        breaker_out = cls(
            state=state,
            until=until,
            reason=reason,
            slow_lane=slow_lane,
        )

        breaker_out.additional_properties = d
        return breaker_out

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
