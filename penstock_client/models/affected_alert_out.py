from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="AffectedAlertOut")


@_attrs_define
class AffectedAlertOut:
    """Alert of one tenant about a common cause.

    Attributes:
        id (str): Id of the alert.
        tenant (str): Id of the tenant.
        tenant_name (str): Name of the tenant.
        pipe (str): Id of the pipe.
        pipe_name (str): Name of the pipe.
        destination (str): Name of the destination in the spec.
        count (int): Number of messages.
        opened_at (datetime.datetime): Time at which it was opened.
        last_at (datetime.datetime): Time of the newest failure.
    """

    id: str
    tenant: str
    tenant_name: str
    pipe: str
    pipe_name: str
    destination: str
    count: int
    opened_at: datetime.datetime
    last_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        tenant = self.tenant

        tenant_name = self.tenant_name

        pipe = self.pipe

        pipe_name = self.pipe_name

        destination = self.destination

        count = self.count

        opened_at = self.opened_at.isoformat()

        last_at = self.last_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "tenant": tenant,
                "tenant_name": tenant_name,
                "pipe": pipe,
                "pipe_name": pipe_name,
                "destination": destination,
                "count": count,
                "opened_at": opened_at,
                "last_at": last_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        tenant = d.pop("tenant")

        tenant_name = d.pop("tenant_name")

        pipe = d.pop("pipe")

        pipe_name = d.pop("pipe_name")

        destination = d.pop("destination")

        count = d.pop("count")

        opened_at = datetime.datetime.fromisoformat(d.pop("opened_at"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        affected_alert_out = cls(
            id=id,
            tenant=tenant,
            tenant_name=tenant_name,
            pipe=pipe,
            pipe_name=pipe_name,
            destination=destination,
            count=count,
            opened_at=opened_at,
            last_at=last_at,
        )

        affected_alert_out.additional_properties = d
        return affected_alert_out

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
