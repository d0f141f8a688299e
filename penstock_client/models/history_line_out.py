from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="HistoryLineOut")


@_attrs_define
class HistoryLineOut:
    """One action of a controller, or repeated refusals of it.

    Attributes:
        action (str): Action that the controller took or wanted to take.
        outcome (str): * `done` - Done
            * `requested` - Requested
            * `cancelled` - Cancelled
            * `rolled back` - Rolled Back
            * `refused` - Refused
            * `unfinished` - Unfinished
            * `failed` - Failed
        refusal (Any | str): Type of the reason; empty for other outcomes than `refused`.

            * `paused` - the controller is paused
            * `cell-busy` - another controller changes the cell
            * `cell-unstable` - the cell is unstable
            * `cell-unknown` - the cell's state is unknown
            * `cell-asleep` - the cell is asleep
            * `verdict-outdated` - the cell has not been judged lately
            * `lease-lost` - another controller took the cell meanwhile
            * `other` - the reason has no type
        reason (str): Of the newest entry.
        cell (None | str): Id of the cell; null if it concerns no cell.
        count (int): Number of entries that the line stands for.
        first_at (datetime.datetime): Time of the first one.
        last_at (datetime.datetime): Time of the last one.
        pipes (list[str]): Ids of the pipes that they were about.
    """

    action: str
    outcome: str
    refusal: Any | str
    reason: str
    cell: None | str
    count: int
    first_at: datetime.datetime
    last_at: datetime.datetime
    pipes: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        action = self.action

        outcome = self.outcome

        refusal: Any | str
        refusal = self.refusal

        reason = self.reason

        cell: None | str
        cell = self.cell

        count = self.count

        first_at = self.first_at.isoformat()

        last_at = self.last_at.isoformat()

        pipes = self.pipes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "action": action,
                "outcome": outcome,
                "refusal": refusal,
                "reason": reason,
                "cell": cell,
                "count": count,
                "first_at": first_at,
                "last_at": last_at,
                "pipes": pipes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        action = d.pop("action")

        outcome = d.pop("outcome")

        def _parse_refusal(data: object) -> Any | str:
            return cast(Any | str, data)

        refusal = _parse_refusal(d.pop("refusal"))

        reason = d.pop("reason")

        def _parse_cell(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        cell = _parse_cell(d.pop("cell"))

        count = d.pop("count")

        first_at = datetime.datetime.fromisoformat(d.pop("first_at"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        pipes = cast(list[str], d.pop("pipes"))

        history_line_out = cls(
            action=action,
            outcome=outcome,
            refusal=refusal,
            reason=reason,
            cell=cell,
            count=count,
            first_at=first_at,
            last_at=last_at,
            pipes=pipes,
        )

        history_line_out.additional_properties = d
        return history_line_out

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
