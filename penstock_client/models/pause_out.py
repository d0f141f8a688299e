from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="PauseOut")


@_attrs_define
class PauseOut:
    """Pause of a controller.

    Attributes:
        id (int): Id.
        controller (str): * `provision` - provisioning
            * `deploy` - deploying
            * `scale` - scaling
        cell (None | str): Null: all cells.
        reason (str): Reason, for people.
        by (str): User who paused it.
        since (datetime.datetime): Start of the pause.
        until (datetime.datetime | None): Time at which the pause ends; null if a user ends it.
        ended_at (datetime.datetime | None): End time; null while it lasts.
    """

    id: int
    controller: str
    cell: None | str
    reason: str
    by: str
    since: datetime.datetime
    until: datetime.datetime | None
    ended_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        controller = self.controller

        cell: None | str
        cell = self.cell

        reason = self.reason

        by = self.by

        since = self.since.isoformat()

        until: None | str
        if isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        ended_at: None | str
        if isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "controller": controller,
                "cell": cell,
                "reason": reason,
                "by": by,
                "since": since,
                "until": until,
                "ended_at": ended_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        controller = d.pop("controller")

        def _parse_cell(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        cell = _parse_cell(d.pop("cell"))

        reason = d.pop("reason")

        by = d.pop("by")

        since = datetime.datetime.fromisoformat(d.pop("since"))

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

        pause_out = cls(
            id=id,
            controller=controller,
            cell=cell,
            reason=reason,
            by=by,
            since=since,
            until=until,
            ended_at=ended_at,
        )

        pause_out.additional_properties = d
        return pause_out

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
