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
    from ..models.rejected_sample_out import RejectedSampleOut
    from ..models.schema_proposal_out import SchemaProposalOut


T = TypeVar("T", bound="RejectionDetailOut")


@_attrs_define
class RejectionDetailOut:
    """Rejected events of one kind, with samples and the schema that they do not fit.

    Attributes:
        id (int): Id.
        source (str): Name of the source in the spec.
        event_type (str): Empty if the source has one type, or the type is unknown.
        code (str): Code of the response that the sender got.
        pointer (str): JSON pointer into the event, with `*` for an index; empty for the whole event.
        detail (str): What was needed and what came, in the newest event.
        sender (str): API key in words, or the Kafka topic.
        stored (bool): True for records of a Kafka source, which are dead letters of the pipe.
        events (int): Number of events in the range.
        first_at (datetime.datetime): Time of the first one.
        last_at (datetime.datetime): Start of the newest minute with one.
        todo (str): What to do, in words.
        samples (list[RejectedSampleOut]): Sample events, without masked values.
        subject (None | str | Unset): Subject that the events were checked with.
        subject_id (None | str | Unset): Id of the subject; null if there is none.
        newest_version (int | None | Unset): Number of the newest version; null if there is none.
        proposal (None | SchemaProposalOut | Unset): Null if no version can be derived that accepts the events.
    """

    id: int
    source: str
    event_type: str
    code: str
    pointer: str
    detail: str
    sender: str
    stored: bool
    events: int
    first_at: datetime.datetime
    last_at: datetime.datetime
    todo: str
    samples: list[RejectedSampleOut]
    subject: None | str | Unset = UNSET
    subject_id: None | str | Unset = UNSET
    newest_version: int | None | Unset = UNSET
    proposal: None | SchemaProposalOut | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.rejected_sample_out import RejectedSampleOut  # noqa: PLC0415
        from ..models.schema_proposal_out import SchemaProposalOut  # noqa: PLC0415

        id = self.id

        source = self.source

        event_type = self.event_type

        code = self.code

        pointer = self.pointer

        detail = self.detail

        sender = self.sender

        stored = self.stored

        events = self.events

        first_at = self.first_at.isoformat()

        last_at = self.last_at.isoformat()

        todo = self.todo

        samples = []
        for samples_item_data in self.samples:
            samples_item = samples_item_data.to_dict()
            samples.append(samples_item)

        subject: None | str | Unset
        if isinstance(self.subject, Unset):
            subject = UNSET
        else:
            subject = self.subject

        subject_id: None | str | Unset
        if isinstance(self.subject_id, Unset):
            subject_id = UNSET
        else:
            subject_id = self.subject_id

        newest_version: int | None | Unset
        if isinstance(self.newest_version, Unset):
            newest_version = UNSET
        else:
            newest_version = self.newest_version

        proposal: dict[str, Any] | None | Unset
        if isinstance(self.proposal, Unset):
            proposal = UNSET
        elif isinstance(self.proposal, SchemaProposalOut):
            proposal = self.proposal.to_dict()
        else:
            proposal = self.proposal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "source": source,
                "event_type": event_type,
                "code": code,
                "pointer": pointer,
                "detail": detail,
                "sender": sender,
                "stored": stored,
                "events": events,
                "first_at": first_at,
                "last_at": last_at,
                "todo": todo,
                "samples": samples,
            }
        )
        if subject is not UNSET:
            field_dict["subject"] = subject
        if subject_id is not UNSET:
            field_dict["subject_id"] = subject_id
        if newest_version is not UNSET:
            field_dict["newest_version"] = newest_version
        if proposal is not UNSET:
            field_dict["proposal"] = proposal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.rejected_sample_out import RejectedSampleOut  # noqa: PLC0415
        from ..models.schema_proposal_out import SchemaProposalOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        source = d.pop("source")

        event_type = d.pop("event_type")

        code = d.pop("code")

        pointer = d.pop("pointer")

        detail = d.pop("detail")

        sender = d.pop("sender")

        stored = d.pop("stored")

        events = d.pop("events")

        first_at = datetime.datetime.fromisoformat(d.pop("first_at"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        todo = d.pop("todo")

        samples = []
        _samples = d.pop("samples")
        for samples_item_data in _samples:
            samples_item = RejectedSampleOut.from_dict(samples_item_data)

            samples.append(samples_item)

        def _parse_subject(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        subject = _parse_subject(d.pop("subject", UNSET))

        def _parse_subject_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        subject_id = _parse_subject_id(d.pop("subject_id", UNSET))

        def _parse_newest_version(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        newest_version = _parse_newest_version(d.pop("newest_version", UNSET))

        def _parse_proposal(data: object) -> None | SchemaProposalOut | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                proposal_type_0 = SchemaProposalOut.from_dict(data)

                return proposal_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SchemaProposalOut | Unset, data)

        proposal = _parse_proposal(d.pop("proposal", UNSET))

        rejection_detail_out = cls(
            id=id,
            source=source,
            event_type=event_type,
            code=code,
            pointer=pointer,
            detail=detail,
            sender=sender,
            stored=stored,
            events=events,
            first_at=first_at,
            last_at=last_at,
            todo=todo,
            samples=samples,
            subject=subject,
            subject_id=subject_id,
            newest_version=newest_version,
            proposal=proposal,
        )

        rejection_detail_out.additional_properties = d
        return rejection_detail_out

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
