from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.step_out import StepOut


T = TypeVar("T", bound="RampOut")


@_attrs_define
class RampOut:
    """Ramp of a revision next to the stable one: in progress, live, or rolled back.

    Attributes:
        revision (int): Number of the revision.
        stable (int): Revision used for comparison and for a rollback.
        outcome (str): `live`, `rolled back` or `overtaken`; empty while the ramp is in progress.
        reason (str): Reason of the rollback.
        waits_for (str): Condition for the next step; empty after the end.
        share (int): Percentage of the keys.
        began_at (datetime.datetime): Start time.
        held_at (datetime.datetime | None): Time at which it was put on hold; null if it is not on hold.
        ended_at (datetime.datetime | None): End time; null while it lasts.
        steps (list[StepOut]): Steps of the ramp.
        held_by (None | str | Unset): User who put it on hold; null if nobody has.
        ended_by (None | str | Unset): Null: it ended automatically.
    """

    revision: int
    stable: int
    outcome: str
    reason: str
    waits_for: str
    share: int
    began_at: datetime.datetime
    held_at: datetime.datetime | None
    ended_at: datetime.datetime | None
    steps: list[StepOut]
    held_by: None | str | Unset = UNSET
    ended_by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.step_out import StepOut  # noqa: PLC0415

        revision = self.revision

        stable = self.stable

        outcome = self.outcome

        reason = self.reason

        waits_for = self.waits_for

        share = self.share

        began_at = self.began_at.isoformat()

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

        steps = []
        for steps_item_data in self.steps:
            steps_item = steps_item_data.to_dict()
            steps.append(steps_item)

        held_by: None | str | Unset
        if isinstance(self.held_by, Unset):
            held_by = UNSET
        else:
            held_by = self.held_by

        ended_by: None | str | Unset
        if isinstance(self.ended_by, Unset):
            ended_by = UNSET
        else:
            ended_by = self.ended_by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "revision": revision,
                "stable": stable,
                "outcome": outcome,
                "reason": reason,
                "waits_for": waits_for,
                "share": share,
                "began_at": began_at,
                "held_at": held_at,
                "ended_at": ended_at,
                "steps": steps,
            }
        )
        if held_by is not UNSET:
            field_dict["held_by"] = held_by
        if ended_by is not UNSET:
            field_dict["ended_by"] = ended_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.step_out import StepOut  # noqa: PLC0415

        d = dict(src_dict)
        revision = d.pop("revision")

        stable = d.pop("stable")

        outcome = d.pop("outcome")

        reason = d.pop("reason")

        waits_for = d.pop("waits_for")

        share = d.pop("share")

        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

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

        steps = []
        _steps = d.pop("steps")
        for steps_item_data in _steps:
            steps_item = StepOut.from_dict(steps_item_data)

            steps.append(steps_item)

        def _parse_held_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        held_by = _parse_held_by(d.pop("held_by", UNSET))

        def _parse_ended_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        ended_by = _parse_ended_by(d.pop("ended_by", UNSET))

        ramp_out = cls(
            revision=revision,
            stable=stable,
            outcome=outcome,
            reason=reason,
            waits_for=waits_for,
            share=share,
            began_at=began_at,
            held_at=held_at,
            ended_at=ended_at,
            steps=steps,
            held_by=held_by,
            ended_by=ended_by,
        )

        ramp_out.additional_properties = d
        return ramp_out

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
