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
    from ..models.alert_out_details import AlertOutDetails
    from ..models.alert_out_sample import AlertOutSample


T = TypeVar("T", bound="AlertOut")


@_attrs_define
class AlertOut:
    """An alert. There is one per destination, cause, status and response, with a count of the failures.

    Attributes:
        id (str): Id of the alert.
        pipe (str): Id of the pipe.
        destination (str): Name of the destination in the spec.
        cause (str): Cause, one of a fixed list of codes.
        suspended (bool): True if the destination is suspended.
        state (str): * `opened` - Opened
            * `acknowledged` - Acknowledged
            * `snoozed` - Snoozed
            * `resolved` - Resolved
        opened_at (datetime.datetime): Time at which it was opened.
        last_at (datetime.datetime): Time of the last one.
        count (int): Failures since it opened; a message that is redriven and fails again counts again. `lost`: messages
            lost. `failing`, `delayed` and `hot-partition`: most messages that waited at once. `numeric-drift`: fields.
            `rejecting`: most events that were rejected in ten minutes. `sequence-gap`: most gaps with missing numbers at
            once.
        status (int): HTTP status of the failures; 0 if there is none or they differ.
        fingerprint (str): Equal for responses that differ only in ids, numbers and times; `other` for an alert with the
            rest.
        details (AlertOutDetails): `common`: fields that the failing messages share and other events lack. `failing` and
            `delayed`: `attempts` and `failed` of the last minutes, and `waiting` messages, the oldest since `oldest_at`.
            `lost`: the loss by `nodes` and `end_to_end` (`due`, `lost`, `percent`), and the first lost `messages`. `hot-
            partition`: the `partition`, its `share_percent` of the events, the `fair_percent` of an even share, events
            `per_s`, `lag` in messages, and the `keys` with the most of its events (`key`, `share_percent`), masked if the
            pipe masks them; if none could be read, `keys_unknown` says why. `numeric-drift`: the `fields` that changed
            most, each with `source`, `field`, `since`, `words`, its `stability_index` and `threshold`, the `basis` of the
            comparison, the numbers of `values` and `usual_values`, `quantiles` and `usual_quantiles` (`p10` to `p90`), and
            `ranges` (`low`, `high`, `percent`, `usual_percent`); `more` counts further fields. `rejecting`: the most
            frequent `rejections` of the last `window_min` minutes, each with `id`, `source`, `event_type`, `code`, `reason`
            and `detail`, `pointer`, `sender` and its number of `events`; `more` counts further ones. `sequence-gap`: the
            newest `gaps` of the last `window_min` minutes, each with `source`, `key` (masked if the pipe masks it),
            `summary`, how many numbers are `missing`, the `missing_numbers`, the numbers `previous` and `number` around it,
            and `position`, `bucket` and `at` of the event after it; `more` counts further ones.
        sample (AlertOutSample): One failure: the request, the response and a curl command; secrets masked.
        snoozed_until (datetime.datetime | None): Time until which no reminder is sent; null if it is not snoozed.
        resolved_at (datetime.datetime | None): Time at which it was resolved; null while it is open.
        resolution (str): Reason for which it was resolved; empty while it is open.
        probe (Any | str): State of the probe, a single message that is sent as a test; empty if there was none.
        probe_says (str): Result of the last probe, for people; empty if there was none.
        acknowledged_by (None | str | Unset): User who acknowledged it; null if nobody has.
    """

    id: str
    pipe: str
    destination: str
    cause: str
    suspended: bool
    state: str
    opened_at: datetime.datetime
    last_at: datetime.datetime
    count: int
    status: int
    fingerprint: str
    details: AlertOutDetails
    sample: AlertOutSample
    snoozed_until: datetime.datetime | None
    resolved_at: datetime.datetime | None
    resolution: str
    probe: Any | str
    probe_says: str
    acknowledged_by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.alert_out_details import AlertOutDetails  # noqa: PLC0415
        from ..models.alert_out_sample import AlertOutSample  # noqa: PLC0415

        id = self.id

        pipe = self.pipe

        destination = self.destination

        cause = self.cause

        suspended = self.suspended

        state = self.state

        opened_at = self.opened_at.isoformat()

        last_at = self.last_at.isoformat()

        count = self.count

        status = self.status

        fingerprint = self.fingerprint

        details = self.details.to_dict()

        sample = self.sample.to_dict()

        snoozed_until: None | str
        if isinstance(self.snoozed_until, datetime.datetime):
            snoozed_until = self.snoozed_until.isoformat()
        else:
            snoozed_until = self.snoozed_until

        resolved_at: None | str
        if isinstance(self.resolved_at, datetime.datetime):
            resolved_at = self.resolved_at.isoformat()
        else:
            resolved_at = self.resolved_at

        resolution = self.resolution

        probe: Any | str
        probe = self.probe

        probe_says = self.probe_says

        acknowledged_by: None | str | Unset
        if isinstance(self.acknowledged_by, Unset):
            acknowledged_by = UNSET
        else:
            acknowledged_by = self.acknowledged_by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "pipe": pipe,
                "destination": destination,
                "cause": cause,
                "suspended": suspended,
                "state": state,
                "opened_at": opened_at,
                "last_at": last_at,
                "count": count,
                "status": status,
                "fingerprint": fingerprint,
                "details": details,
                "sample": sample,
                "snoozed_until": snoozed_until,
                "resolved_at": resolved_at,
                "resolution": resolution,
                "probe": probe,
                "probe_says": probe_says,
            }
        )
        if acknowledged_by is not UNSET:
            field_dict["acknowledged_by"] = acknowledged_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.alert_out_details import AlertOutDetails  # noqa: PLC0415
        from ..models.alert_out_sample import AlertOutSample  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        pipe = d.pop("pipe")

        destination = d.pop("destination")

        cause = d.pop("cause")

        suspended = d.pop("suspended")

        state = d.pop("state")

        opened_at = datetime.datetime.fromisoformat(d.pop("opened_at"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        count = d.pop("count")

        status = d.pop("status")

        fingerprint = d.pop("fingerprint")

        details = AlertOutDetails.from_dict(d.pop("details"))

        sample = AlertOutSample.from_dict(d.pop("sample"))

        def _parse_snoozed_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                snoozed_until_type_0 = datetime.datetime.fromisoformat(data)

                return snoozed_until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        snoozed_until = _parse_snoozed_until(d.pop("snoozed_until"))

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

        resolution = d.pop("resolution")

        def _parse_probe(data: object) -> Any | str:
            return cast(Any | str, data)

        probe = _parse_probe(d.pop("probe"))

        probe_says = d.pop("probe_says")

        def _parse_acknowledged_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        acknowledged_by = _parse_acknowledged_by(d.pop("acknowledged_by", UNSET))

        alert_out = cls(
            id=id,
            pipe=pipe,
            destination=destination,
            cause=cause,
            suspended=suspended,
            state=state,
            opened_at=opened_at,
            last_at=last_at,
            count=count,
            status=status,
            fingerprint=fingerprint,
            details=details,
            sample=sample,
            snoozed_until=snoozed_until,
            resolved_at=resolved_at,
            resolution=resolution,
            probe=probe,
            probe_says=probe_says,
            acknowledged_by=acknowledged_by,
        )

        alert_out.additional_properties = d
        return alert_out

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
