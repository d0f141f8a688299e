from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="AdmissionOut")


@_attrs_define
class AdmissionOut:
    """Admission of a new pipe.

    Attributes:
        share (int): Percent of the pipe's keys that are admitted.
        expected_per_s (int): Events per second, as given when the pipe was created.
        reason (str): Reason why it waits, or why the share was reduced.
        step_at (datetime.datetime | None): Start of the current step; null until events arrive.
        held_at (datetime.datetime | None): Time at which it was put on hold; null if it is not on hold.
        ended_at (datetime.datetime | None): End time; null while it lasts.
        held (int): Number of messages that are held before the pipe's steps now.
        held_by (None | str | Unset): Null: held automatically, or not held.
    """

    share: int
    expected_per_s: int
    reason: str
    step_at: datetime.datetime | None
    held_at: datetime.datetime | None
    ended_at: datetime.datetime | None
    held: int
    held_by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        share = self.share

        expected_per_s = self.expected_per_s

        reason = self.reason

        step_at: None | str
        if isinstance(self.step_at, datetime.datetime):
            step_at = self.step_at.isoformat()
        else:
            step_at = self.step_at

        held_at: None | str
        if isinstance(self.held_at, datetime.datetime):
            held_at = self.held_at.isoformat()
        else:
            held_at = self.held_at

        ended_at: None | str
        if isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        held = self.held

        held_by: None | str | Unset
        if isinstance(self.held_by, Unset):
            held_by = UNSET
        else:
            held_by = self.held_by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "share": share,
                "expected_per_s": expected_per_s,
                "reason": reason,
                "step_at": step_at,
                "held_at": held_at,
                "ended_at": ended_at,
                "held": held,
            }
        )
        if held_by is not UNSET:
            field_dict["held_by"] = held_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        share = d.pop("share")

        expected_per_s = d.pop("expected_per_s")

        reason = d.pop("reason")

        def _parse_step_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                step_at_type_0 = datetime.datetime.fromisoformat(data)

                return step_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        step_at = _parse_step_at(d.pop("step_at"))

        def _parse_held_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                held_at_type_0 = datetime.datetime.fromisoformat(data)

                return held_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        held_at = _parse_held_at(d.pop("held_at"))

        def _parse_ended_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ended_at = _parse_ended_at(d.pop("ended_at"))

        held = d.pop("held")

        def _parse_held_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        held_by = _parse_held_by(d.pop("held_by", UNSET))

        admission_out = cls(
            share=share,
            expected_per_s=expected_per_s,
            reason=reason,
            step_at=step_at,
            held_at=held_at,
            ended_at=ended_at,
            held=held,
            held_by=held_by,
        )

        admission_out.additional_properties = d
        return admission_out

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
