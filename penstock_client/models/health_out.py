from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="HealthOut")


@_attrs_define
class HealthOut:
    """Health of a destination at the last check.

    Attributes:
        checked_at (datetime.datetime): Time of the last figures.
        delivered (int): Messages delivered in the last three minutes.
        failed (int): Attempts of the last three minutes that failed and are retried.
        waiting (int): Messages that wait for transmit or for a retry.
        oldest_at (datetime.datetime | None): Minute of the oldest waiting message; null if none waits.
        failing_since (datetime.datetime | None): Time since which most attempts fail; null if they succeed.
        delayed_since (datetime.datetime | None): Time since which messages wait for too long although attempts succeed.
    """

    checked_at: datetime.datetime
    delivered: int
    failed: int
    waiting: int
    oldest_at: datetime.datetime | None
    failing_since: datetime.datetime | None
    delayed_since: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        checked_at = self.checked_at.isoformat()

        delivered = self.delivered

        failed = self.failed

        waiting = self.waiting

        oldest_at: None | str
        if isinstance(self.oldest_at, datetime.datetime):
            oldest_at = self.oldest_at.isoformat()
        else:
            oldest_at = self.oldest_at

        failing_since: None | str
        if isinstance(self.failing_since, datetime.datetime):
            failing_since = self.failing_since.isoformat()
        else:
            failing_since = self.failing_since

        delayed_since: None | str
        if isinstance(self.delayed_since, datetime.datetime):
            delayed_since = self.delayed_since.isoformat()
        else:
            delayed_since = self.delayed_since

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checked_at": checked_at,
                "delivered": delivered,
                "failed": failed,
                "waiting": waiting,
                "oldest_at": oldest_at,
                "failing_since": failing_since,
                "delayed_since": delayed_since,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        checked_at = datetime.datetime.fromisoformat(d.pop("checked_at"))

        delivered = d.pop("delivered")

        failed = d.pop("failed")

        waiting = d.pop("waiting")

        def _parse_oldest_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                oldest_at_type_0 = datetime.datetime.fromisoformat(data)

                return oldest_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        oldest_at = _parse_oldest_at(d.pop("oldest_at"))

        def _parse_failing_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                failing_since_type_0 = datetime.datetime.fromisoformat(data)

                return failing_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        failing_since = _parse_failing_since(d.pop("failing_since"))

        def _parse_delayed_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                delayed_since_type_0 = datetime.datetime.fromisoformat(data)

                return delayed_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        delayed_since = _parse_delayed_since(d.pop("delayed_since"))

        health_out = cls(
            checked_at=checked_at,
            delivered=delivered,
            failed=failed,
            waiting=waiting,
            oldest_at=oldest_at,
            failing_since=failing_since,
            delayed_since=delayed_since,
        )

        health_out.additional_properties = d
        return health_out

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
