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
    from ..models.control_action_out_detail import ControlActionOutDetail


T = TypeVar("T", bound="ControlActionOut")


@_attrs_define
class ControlActionOut:
    """One change to a cell or pipe by a controller or a person, or its refusal.

    Attributes:
        id (int): Id of the entry.
        at (datetime.datetime): Time of the event.
        controller (str): * `provision` - provisioning
            * `deploy` - deploying
            * `scale` - scaling
            * `person` - a person
        cell (None | str): Id of the cell; null if it concerns no cell.
        pipe (None | str): Id of the pipe.
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
        reason (str): Reason, for people.
        detail (ControlActionOutDetail): Figures on which the controller decided.
        author (None | str | Unset): User who created it; null if the user was deleted or Penstock created it.
    """

    id: int
    at: datetime.datetime
    controller: str
    cell: None | str
    pipe: None | str
    action: str
    outcome: str
    refusal: Any | str
    reason: str
    detail: ControlActionOutDetail
    author: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.control_action_out_detail import ControlActionOutDetail  # noqa: PLC0415

        id = self.id

        at = self.at.isoformat()

        controller = self.controller

        cell: None | str
        cell = self.cell

        pipe: None | str
        pipe = self.pipe

        action = self.action

        outcome = self.outcome

        refusal: Any | str
        refusal = self.refusal

        reason = self.reason

        detail = self.detail.to_dict()

        author: None | str | Unset
        if isinstance(self.author, Unset):
            author = UNSET
        else:
            author = self.author

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "at": at,
                "controller": controller,
                "cell": cell,
                "pipe": pipe,
                "action": action,
                "outcome": outcome,
                "refusal": refusal,
                "reason": reason,
                "detail": detail,
            }
        )
        if author is not UNSET:
            field_dict["author"] = author

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.control_action_out_detail import ControlActionOutDetail  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        controller = d.pop("controller")

        def _parse_cell(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        cell = _parse_cell(d.pop("cell"))

        def _parse_pipe(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        pipe = _parse_pipe(d.pop("pipe"))

        action = d.pop("action")

        outcome = d.pop("outcome")

        def _parse_refusal(data: object) -> Any | str:
            return cast(Any | str, data)

        refusal = _parse_refusal(d.pop("refusal"))

        reason = d.pop("reason")

        detail = ControlActionOutDetail.from_dict(d.pop("detail"))

        def _parse_author(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        author = _parse_author(d.pop("author", UNSET))

        control_action_out = cls(
            id=id,
            at=at,
            controller=controller,
            cell=cell,
            pipe=pipe,
            action=action,
            outcome=outcome,
            refusal=refusal,
            reason=reason,
            detail=detail,
            author=author,
        )

        control_action_out.additional_properties = d
        return control_action_out

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
