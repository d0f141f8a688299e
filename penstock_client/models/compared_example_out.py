from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.diff_line_out import DiffLineOut


T = TypeVar("T", bound="ComparedExampleOut")


@_attrs_define
class ComparedExampleOut:
    """An event that the draft treats differently.

    Attributes:
        kind (str): * `changed` - changed
            * `rerouted` - rerouted
            * `rejected` - rejected
            * `recovered` - recovered
        message_id (str): Id of the message, a TimeUuid. Requests carry it as `webhook-id`.
        position (str): Position of the event: generation, partition and offset.
        url (str): Path of the message in this API.
        source (str): Name of the source in the spec.
        ingest_time (datetime.datetime): Time at which ingest accepted the event.
        live_to (list[str]): Destinations of the live revision.
        draft_to (list[str]): Destinations of the draft.
        reason (str): Why the draft rejects the event; empty if it does not.
        lines (list[DiffLineOut]): Results that differ, of the live revision (`gone`) and the draft (`new`).
        is_cut (bool): True if a body is longer than shown.
    """

    kind: str
    message_id: str
    position: str
    url: str
    source: str
    ingest_time: datetime.datetime
    live_to: list[str]
    draft_to: list[str]
    reason: str
    lines: list[DiffLineOut]
    is_cut: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.diff_line_out import DiffLineOut  # noqa: PLC0415

        kind = self.kind

        message_id = self.message_id

        position = self.position

        url = self.url

        source = self.source

        ingest_time = self.ingest_time.isoformat()

        live_to = self.live_to

        draft_to = self.draft_to

        reason = self.reason

        lines = []
        for lines_item_data in self.lines:
            lines_item = lines_item_data.to_dict()
            lines.append(lines_item)

        is_cut = self.is_cut

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "message_id": message_id,
                "position": position,
                "url": url,
                "source": source,
                "ingest_time": ingest_time,
                "live_to": live_to,
                "draft_to": draft_to,
                "reason": reason,
                "lines": lines,
                "is_cut": is_cut,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.diff_line_out import DiffLineOut  # noqa: PLC0415

        d = dict(src_dict)
        kind = d.pop("kind")

        message_id = d.pop("message_id")

        position = d.pop("position")

        url = d.pop("url")

        source = d.pop("source")

        ingest_time = datetime.datetime.fromisoformat(d.pop("ingest_time"))

        live_to = cast(list[str], d.pop("live_to"))

        draft_to = cast(list[str], d.pop("draft_to"))

        reason = d.pop("reason")

        lines = []
        _lines = d.pop("lines")
        for lines_item_data in _lines:
            lines_item = DiffLineOut.from_dict(lines_item_data)

            lines.append(lines_item)

        is_cut = d.pop("is_cut")

        compared_example_out = cls(
            kind=kind,
            message_id=message_id,
            position=position,
            url=url,
            source=source,
            ingest_time=ingest_time,
            live_to=live_to,
            draft_to=draft_to,
            reason=reason,
            lines=lines,
            is_cut=is_cut,
        )

        compared_example_out.additional_properties = d
        return compared_example_out

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
