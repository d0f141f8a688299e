from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.affected_alert_out import AffectedAlertOut


T = TypeVar("T", bound="CommonCauseOut")


@_attrs_define
class CommonCauseOut:
    """One failure at the same host for several tenants.

    Attributes:
        words (str): The failure as a phrase, such as `api.example.com returns 503`.
        cause (str): Cause, one of a fixed list of codes.
        status (int): HTTP status; 0 without a response.
        host (str): Host name of the destinations.
        fingerprint (str): Of the response; empty without a body.
        tenants (int): Number of affected tenants.
        pipes (int): Number of affected pipes.
        since (datetime.datetime): Time at which the first of the alerts was opened.
        last_at (datetime.datetime): Time of the last one.
        alerts (list[AffectedAlertOut]): Open alerts, the oldest first.
    """

    words: str
    cause: str
    status: int
    host: str
    fingerprint: str
    tenants: int
    pipes: int
    since: datetime.datetime
    last_at: datetime.datetime
    alerts: list[AffectedAlertOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.affected_alert_out import AffectedAlertOut  # noqa: PLC0415

        words = self.words

        cause = self.cause

        status = self.status

        host = self.host

        fingerprint = self.fingerprint

        tenants = self.tenants

        pipes = self.pipes

        since = self.since.isoformat()

        last_at = self.last_at.isoformat()

        alerts = []
        for alerts_item_data in self.alerts:
            alerts_item = alerts_item_data.to_dict()
            alerts.append(alerts_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "words": words,
                "cause": cause,
                "status": status,
                "host": host,
                "fingerprint": fingerprint,
                "tenants": tenants,
                "pipes": pipes,
                "since": since,
                "last_at": last_at,
                "alerts": alerts,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.affected_alert_out import AffectedAlertOut  # noqa: PLC0415

        d = dict(src_dict)
        words = d.pop("words")

        cause = d.pop("cause")

        status = d.pop("status")

        host = d.pop("host")

        fingerprint = d.pop("fingerprint")

        tenants = d.pop("tenants")

        pipes = d.pop("pipes")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        alerts = []
        _alerts = d.pop("alerts")
        for alerts_item_data in _alerts:
            alerts_item = AffectedAlertOut.from_dict(alerts_item_data)

            alerts.append(alerts_item)

        common_cause_out = cls(
            words=words,
            cause=cause,
            status=status,
            host=host,
            fingerprint=fingerprint,
            tenants=tenants,
            pipes=pipes,
            since=since,
            last_at=last_at,
            alerts=alerts,
        )

        common_cause_out.additional_properties = d
        return common_cause_out

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
