from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.affected_out import AffectedOut


T = TypeVar("T", bound="ProblemOnBoardOut")


@_attrs_define
class ProblemOnBoardOut:
    """Problem of the platform, with the next step.

    Attributes:
        kind (str): * `task-overdue` - task-overdue
            * `task-failed` - task-failed
            * `task-waiting` - task-waiting
            * `kafka-unreachable` - kafka-unreachable
            * `kafka-degraded` - kafka-degraded
            * `ingest-short` - ingest-short
            * `loss` - loss
            * `failing` - failing
            * `blocked` - blocked
            * `silent` - silent
            * `behind` - behind
            * `unknown` - unknown
            * `recovering` - recovering
            * `not-started` - not-started
            * `incident` - incident
        what (str): The problem, in a sentence.
        since (datetime.datetime | None): Null: its start is unknown.
        affected (AffectedOut | None): Null: it affects no messages yet.
        todo (str): Next step for staff.
    """

    kind: str
    what: str
    since: datetime.datetime | None
    affected: AffectedOut | None
    todo: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.affected_out import AffectedOut  # noqa: PLC0415

        kind = self.kind

        what = self.what

        since: None | str
        if isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        affected: dict[str, Any] | None
        if isinstance(self.affected, AffectedOut):
            affected = self.affected.to_dict()
        else:
            affected = self.affected

        todo = self.todo

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "what": what,
                "since": since,
                "affected": affected,
                "todo": todo,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.affected_out import AffectedOut  # noqa: PLC0415

        d = dict(src_dict)
        kind = d.pop("kind")

        what = d.pop("what")

        def _parse_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        since = _parse_since(d.pop("since"))

        def _parse_affected(data: object) -> AffectedOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                affected_type_0 = AffectedOut.from_dict(data)

                return affected_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AffectedOut | None, data)

        affected = _parse_affected(d.pop("affected"))

        todo = d.pop("todo")

        problem_on_board_out = cls(
            kind=kind,
            what=what,
            since=since,
            affected=affected,
            todo=todo,
        )

        problem_on_board_out.additional_properties = d
        return problem_on_board_out

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
