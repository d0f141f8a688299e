from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="OldestWaitingOut")


@_attrs_define
class OldestWaitingOut:
    """Destination with the oldest message that waits for delivery, of all tenants.

    Attributes:
        tenant (str): Id of the tenant.
        pipe (str): Id of the pipe.
        destination (str): Name of the destination in the spec.
        oldest_at (datetime.datetime): Minute of the message.
        waiting (int): Messages that wait at the destination.
    """

    tenant: str
    pipe: str
    destination: str
    oldest_at: datetime.datetime
    waiting: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tenant = self.tenant

        pipe = self.pipe

        destination = self.destination

        oldest_at = self.oldest_at.isoformat()

        waiting = self.waiting

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "pipe": pipe,
                "destination": destination,
                "oldest_at": oldest_at,
                "waiting": waiting,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tenant = d.pop("tenant")

        pipe = d.pop("pipe")

        destination = d.pop("destination")

        oldest_at = datetime.datetime.fromisoformat(d.pop("oldest_at"))

        waiting = d.pop("waiting")

        oldest_waiting_out = cls(
            tenant=tenant,
            pipe=pipe,
            destination=destination,
            oldest_at=oldest_at,
            waiting=waiting,
        )

        oldest_waiting_out.additional_properties = d
        return oldest_waiting_out

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
