from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.logged_event_out_headers import LoggedEventOutHeaders


T = TypeVar("T", bound="LoggedEventOut")


@_attrs_define
class LoggedEventOut:
    """Event as ingest has stored it, before any step.

    Attributes:
        id (str): Id of the message (`webhook-id`).
        position (str): Position of the event: generation, partition and offset.
        source (str): Name of the source in the spec.
        revision (int): Revision that processes it.
        accepted_at (datetime.datetime): Time at which ingest accepted the event.
        headers (LoggedEventOutHeaders): Content type, and the attributes of a CloudEvent as `ce-<name>`.
        body (None | str): The event; null if the pipe masks fields of it and it is not JSON.
        is_masked (bool): True if the pipe masks fields; their values are masked in `body`.
    """

    id: str
    position: str
    source: str
    revision: int
    accepted_at: datetime.datetime
    headers: LoggedEventOutHeaders
    body: None | str
    is_masked: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.logged_event_out_headers import LoggedEventOutHeaders  # noqa: PLC0415

        id = self.id

        position = self.position

        source = self.source

        revision = self.revision

        accepted_at = self.accepted_at.isoformat()

        headers = self.headers.to_dict()

        body: None | str
        body = self.body

        is_masked = self.is_masked

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "position": position,
                "source": source,
                "revision": revision,
                "accepted_at": accepted_at,
                "headers": headers,
                "body": body,
                "is_masked": is_masked,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.logged_event_out_headers import LoggedEventOutHeaders  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        position = d.pop("position")

        source = d.pop("source")

        revision = d.pop("revision")

        accepted_at = datetime.datetime.fromisoformat(d.pop("accepted_at"))

        headers = LoggedEventOutHeaders.from_dict(d.pop("headers"))

        def _parse_body(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        body = _parse_body(d.pop("body"))

        is_masked = d.pop("is_masked")

        logged_event_out = cls(
            id=id,
            position=position,
            source=source,
            revision=revision,
            accepted_at=accepted_at,
            headers=headers,
            body=body,
            is_masked=is_masked,
        )

        logged_event_out.additional_properties = d
        return logged_event_out

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
