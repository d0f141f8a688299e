from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="TaskRunOut")


@_attrs_define
class TaskRunOut:
    """Last run of a controller's task.

    Attributes:
        at (datetime.datetime): When it last completed; a run that failed does not change it.
        outcome (str): * `changed` - Changed
            * `nothing` - nothing to do
            * `waiting` - Waiting
            * `failed` - Failed
        since (datetime.datetime): Since when each run has had this outcome.
        said (str): Text of the task's last report.
    """

    at: datetime.datetime
    outcome: str
    since: datetime.datetime
    said: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        outcome = self.outcome

        since = self.since.isoformat()

        said = self.said

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "outcome": outcome,
                "since": since,
                "said": said,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        outcome = d.pop("outcome")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        said = d.pop("said")

        task_run_out = cls(
            at=at,
            outcome=outcome,
            since=since,
            said=said,
        )

        task_run_out.additional_properties = d
        return task_run_out

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
