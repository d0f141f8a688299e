from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.alert_notice_details import AlertNoticeDetails
    from ..models.alert_notice_pipe import AlertNoticePipe
    from ..models.alert_notice_sample import AlertNoticeSample


T = TypeVar("T", bound="AlertNotice")


@_attrs_define
class AlertNotice:
    """Body of a notice of an alert.

    Attributes:
        type_ (str): Occasion of the notice.
        alert (str): Id of the alert.
        tenant (str): Id of the tenant.
        pipe (AlertNoticePipe): The pipe.
        destination (str): Name of the destination; empty for an alert of the whole pipe.
        cause (str): Cause of the alert.
        suspended (bool): True if the destination is suspended.
        count (int): Number of messages that failed.
        status (int): HTTP status of the last response; 0 without a response.
        details (AlertNoticeDetails): Further figures of this kind of alert.
        opened_at (datetime.datetime): Time at which it was opened.
        last_at (datetime.datetime): Time of the last failure.
        resolved_at (datetime.datetime | None): Time at which it was resolved; null while it is open.
        duration_s (int | None): Duration in seconds; null while it is open.
        resolution (str): Reason for which it was resolved; empty while it is open.
        sample (AlertNoticeSample): One of the messages that failed.
        url (str): URL of the alert in the console.
    """

    type_: str
    alert: str
    tenant: str
    pipe: AlertNoticePipe
    destination: str
    cause: str
    suspended: bool
    count: int
    status: int
    details: AlertNoticeDetails
    opened_at: datetime.datetime
    last_at: datetime.datetime
    resolved_at: datetime.datetime | None
    duration_s: int | None
    resolution: str
    sample: AlertNoticeSample
    url: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.alert_notice_details import AlertNoticeDetails  # noqa: PLC0415
        from ..models.alert_notice_pipe import AlertNoticePipe  # noqa: PLC0415
        from ..models.alert_notice_sample import AlertNoticeSample  # noqa: PLC0415

        type_ = self.type_

        alert = self.alert

        tenant = self.tenant

        pipe = self.pipe.to_dict()

        destination = self.destination

        cause = self.cause

        suspended = self.suspended

        count = self.count

        status = self.status

        details = self.details.to_dict()

        opened_at = self.opened_at.isoformat()

        last_at = self.last_at.isoformat()

        resolved_at: None | str
        if isinstance(self.resolved_at, datetime.datetime):
            resolved_at = self.resolved_at.isoformat()
        else:
            resolved_at = self.resolved_at

        duration_s: int | None
        duration_s = self.duration_s

        resolution = self.resolution

        sample = self.sample.to_dict()

        url = self.url

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
                "alert": alert,
                "tenant": tenant,
                "pipe": pipe,
                "destination": destination,
                "cause": cause,
                "suspended": suspended,
                "count": count,
                "status": status,
                "details": details,
                "opened_at": opened_at,
                "last_at": last_at,
                "resolved_at": resolved_at,
                "duration_s": duration_s,
                "resolution": resolution,
                "sample": sample,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.alert_notice_details import AlertNoticeDetails  # noqa: PLC0415
        from ..models.alert_notice_pipe import AlertNoticePipe  # noqa: PLC0415
        from ..models.alert_notice_sample import AlertNoticeSample  # noqa: PLC0415

        d = dict(src_dict)
        type_ = d.pop("type")

        alert = d.pop("alert")

        tenant = d.pop("tenant")

        pipe = AlertNoticePipe.from_dict(d.pop("pipe"))

        destination = d.pop("destination")

        cause = d.pop("cause")

        suspended = d.pop("suspended")

        count = d.pop("count")

        status = d.pop("status")

        details = AlertNoticeDetails.from_dict(d.pop("details"))

        opened_at = datetime.datetime.fromisoformat(d.pop("opened_at"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        def _parse_resolved_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                resolved_at_type_0 = datetime.datetime.fromisoformat(data)

                return resolved_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        resolved_at = _parse_resolved_at(d.pop("resolved_at"))

        def _parse_duration_s(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        duration_s = _parse_duration_s(d.pop("duration_s"))

        resolution = d.pop("resolution")

        sample = AlertNoticeSample.from_dict(d.pop("sample"))

        url = d.pop("url")

        alert_notice = cls(
            type_=type_,
            alert=alert,
            tenant=tenant,
            pipe=pipe,
            destination=destination,
            cause=cause,
            suspended=suspended,
            count=count,
            status=status,
            details=details,
            opened_at=opened_at,
            last_at=last_at,
            resolved_at=resolved_at,
            duration_s=duration_s,
            resolution=resolution,
            sample=sample,
            url=url,
        )

        alert_notice.additional_properties = d
        return alert_notice

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
