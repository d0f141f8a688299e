from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="EventAckOut")


@_attrs_define
class EventAckOut:
    """ACK of one event, or its refusal as part of a batch.

    Attributes:
        status (int): 202 for a stored event, else the status of its refusal.
        id (str | Unset): Id of the message. Deliveries carry it as `webhook-id`.
        position (str | Unset): Position of the event: generation, partition and offset.
        bucket (int | Unset): Minute of ingest, since 1970-01-01T00:00Z, in which the ledger counts the event.
        code (str | Unset): Stable code of the refusal.
        detail (str | Unset): Reason of the refusal, for people.
        pointer (str | Unset): JSON pointer to the refused part of the event.
    """

    status: int
    id: str | Unset = UNSET
    position: str | Unset = UNSET
    bucket: int | Unset = UNSET
    code: str | Unset = UNSET
    detail: str | Unset = UNSET
    pointer: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        status = self.status

        id = self.id

        position = self.position

        bucket = self.bucket

        code = self.code

        detail = self.detail

        pointer = self.pointer

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "status": status,
            }
        )
        if id is not UNSET:
            field_dict["id"] = id
        if position is not UNSET:
            field_dict["position"] = position
        if bucket is not UNSET:
            field_dict["bucket"] = bucket
        if code is not UNSET:
            field_dict["code"] = code
        if detail is not UNSET:
            field_dict["detail"] = detail
        if pointer is not UNSET:
            field_dict["pointer"] = pointer

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        status = d.pop("status")

        id = d.pop("id", UNSET)

        position = d.pop("position", UNSET)

        bucket = d.pop("bucket", UNSET)

        code = d.pop("code", UNSET)

        detail = d.pop("detail", UNSET)

        pointer = d.pop("pointer", UNSET)

        event_ack_out = cls(
            status=status,
            id=id,
            position=position,
            bucket=bucket,
            code=code,
            detail=detail,
            pointer=pointer,
        )

        event_ack_out.additional_properties = d
        return event_ack_out

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
