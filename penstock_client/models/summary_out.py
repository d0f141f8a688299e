from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.failed_revision_out import FailedRevisionOut
    from ..models.open_alert_out import OpenAlertOut
    from ..models.pipe_loss_out import PipeLossOut
    from ..models.suspended_out import SuspendedOut


T = TypeVar("T", bound="SummaryOut")


@_attrs_define
class SummaryOut:
    """Problems of a tenant at this moment, as the daily digest has them. Each list has at most `limit` entries.

    Attributes:
        total (int): Number of all problems, also of those that are not listed.
        unacknowledged_alerts (int): The number at Alerts in the console.
        alerts (list[OpenAlertOut]): Open alerts that are not snoozed, oldest first.
        suspended (list[SuspendedOut]): Suspended destinations.
        failed (list[FailedRevisionOut]): Pipes whose newest revision failed.
        lost (list[PipeLossOut]): Messages lost in minutes that were sealed in the last day.
    """

    total: int
    unacknowledged_alerts: int
    alerts: list[OpenAlertOut]
    suspended: list[SuspendedOut]
    failed: list[FailedRevisionOut]
    lost: list[PipeLossOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.failed_revision_out import FailedRevisionOut  # noqa: PLC0415
        from ..models.open_alert_out import OpenAlertOut  # noqa: PLC0415
        from ..models.pipe_loss_out import PipeLossOut  # noqa: PLC0415
        from ..models.suspended_out import SuspendedOut  # noqa: PLC0415

        total = self.total

        unacknowledged_alerts = self.unacknowledged_alerts

        alerts = []
        for alerts_item_data in self.alerts:
            alerts_item = alerts_item_data.to_dict()
            alerts.append(alerts_item)

        suspended = []
        for suspended_item_data in self.suspended:
            suspended_item = suspended_item_data.to_dict()
            suspended.append(suspended_item)

        failed = []
        for failed_item_data in self.failed:
            failed_item = failed_item_data.to_dict()
            failed.append(failed_item)

        lost = []
        for lost_item_data in self.lost:
            lost_item = lost_item_data.to_dict()
            lost.append(lost_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "total": total,
                "unacknowledged_alerts": unacknowledged_alerts,
                "alerts": alerts,
                "suspended": suspended,
                "failed": failed,
                "lost": lost,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.failed_revision_out import FailedRevisionOut  # noqa: PLC0415
        from ..models.open_alert_out import OpenAlertOut  # noqa: PLC0415
        from ..models.pipe_loss_out import PipeLossOut  # noqa: PLC0415
        from ..models.suspended_out import SuspendedOut  # noqa: PLC0415

        d = dict(src_dict)
        total = d.pop("total")

        unacknowledged_alerts = d.pop("unacknowledged_alerts")

        alerts = []
        _alerts = d.pop("alerts")
        for alerts_item_data in _alerts:
            alerts_item = OpenAlertOut.from_dict(alerts_item_data)

            alerts.append(alerts_item)

        suspended = []
        _suspended = d.pop("suspended")
        for suspended_item_data in _suspended:
            suspended_item = SuspendedOut.from_dict(suspended_item_data)

            suspended.append(suspended_item)

        failed = []
        _failed = d.pop("failed")
        for failed_item_data in _failed:
            failed_item = FailedRevisionOut.from_dict(failed_item_data)

            failed.append(failed_item)

        lost = []
        _lost = d.pop("lost")
        for lost_item_data in _lost:
            lost_item = PipeLossOut.from_dict(lost_item_data)

            lost.append(lost_item)

        summary_out = cls(
            total=total,
            unacknowledged_alerts=unacknowledged_alerts,
            alerts=alerts,
            suspended=suspended,
            failed=failed,
            lost=lost,
        )

        summary_out.additional_properties = d
        return summary_out

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
