from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.event_types_in_subjects import EventTypesInSubjects


T = TypeVar("T", bound="EventTypesIn")


@_attrs_define
class EventTypesIn:
    """All event types of a source.

    Attributes:
        subjects (EventTypesInSubjects): Subject of each event type, at most 20. The only type is `""` if `type_from` is
            empty. `{}`: the source accepts all events.
        type_from (str | Unset): Place of an event's type: `field:<path>`, a field of the event such as
            `field:meta.kind`; `header:<name>`, a header of the request or Kafka record, where `ce-type` is the attribute of
            a CloudEvent; or empty, if the source has one event type. Default: ''.
        based_on (int | Unset): Version that your change is based on, 0 if there was none. Without it, any version is
            replaced.
    """

    subjects: EventTypesInSubjects
    type_from: str | Unset = ""
    based_on: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.event_types_in_subjects import EventTypesInSubjects  # noqa: PLC0415

        subjects = self.subjects.to_dict()

        type_from = self.type_from

        based_on = self.based_on

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "subjects": subjects,
            }
        )
        if type_from is not UNSET:
            field_dict["type_from"] = type_from
        if based_on is not UNSET:
            field_dict["based_on"] = based_on

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.event_types_in_subjects import EventTypesInSubjects  # noqa: PLC0415

        d = dict(src_dict)
        subjects = EventTypesInSubjects.from_dict(d.pop("subjects"))

        type_from = d.pop("type_from", UNSET)

        based_on = d.pop("based_on", UNSET)

        event_types_in = cls(
            subjects=subjects,
            type_from=type_from,
            based_on=based_on,
        )

        event_types_in.additional_properties = d
        return event_types_in

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
