from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="RelocationOut")


@_attrs_define
class RelocationOut:
    """Migration of a pipe from one cell to another.

    Attributes:
        id (int): Number of the migration.
        pipe (str): Id of the pipe.
        from_cell (str): Id of the cell that the pipe leaves.
        to_cell (str): Id of the cell to which the pipe is migrated.
        state (str): * `requested` - Requested
            * `draining` - Draining
            * `done` - Done
            * `turned back` - Turned Back
            * `given up` - Given Up
        says (str): Reason why it waits, or how it ended.
        reason (str): Reason, for people.
        asked_at (datetime.datetime): Time of the request.
        switched_at (datetime.datetime | None): Time since which new events are sent to `to_cell`.
        finished_at (datetime.datetime | None): End time; null while it is running.
        by (None | str | Unset): Null: an automatic return to the first cell.
    """

    id: int
    pipe: str
    from_cell: str
    to_cell: str
    state: str
    says: str
    reason: str
    asked_at: datetime.datetime
    switched_at: datetime.datetime | None
    finished_at: datetime.datetime | None
    by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        pipe = self.pipe

        from_cell = self.from_cell

        to_cell = self.to_cell

        state = self.state

        says = self.says

        reason = self.reason

        asked_at = self.asked_at.isoformat()

        switched_at: None | str
        if isinstance(self.switched_at, datetime.datetime):
            switched_at = self.switched_at.isoformat()
        else:
            switched_at = self.switched_at

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        by: None | str | Unset
        if isinstance(self.by, Unset):
            by = UNSET
        else:
            by = self.by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "pipe": pipe,
                "from_cell": from_cell,
                "to_cell": to_cell,
                "state": state,
                "says": says,
                "reason": reason,
                "asked_at": asked_at,
                "switched_at": switched_at,
                "finished_at": finished_at,
            }
        )
        if by is not UNSET:
            field_dict["by"] = by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        pipe = d.pop("pipe")

        from_cell = d.pop("from_cell")

        to_cell = d.pop("to_cell")

        state = d.pop("state")

        says = d.pop("says")

        reason = d.pop("reason")

        asked_at = datetime.datetime.fromisoformat(d.pop("asked_at"))

        def _parse_switched_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                switched_at_type_0 = datetime.datetime.fromisoformat(data)

                return switched_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        switched_at = _parse_switched_at(d.pop("switched_at"))

        def _parse_finished_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        def _parse_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        by = _parse_by(d.pop("by", UNSET))

        relocation_out = cls(
            id=id,
            pipe=pipe,
            from_cell=from_cell,
            to_cell=to_cell,
            state=state,
            says=says,
            reason=reason,
            asked_at=asked_at,
            switched_at=switched_at,
            finished_at=finished_at,
            by=by,
        )

        relocation_out.additional_properties = d
        return relocation_out

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
