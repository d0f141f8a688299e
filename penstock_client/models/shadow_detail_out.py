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
    from ..models.pipe_spec import PipeSpec
    from ..models.shadow_cost_out import ShadowCostOut
    from ..models.shadow_detail_out_rejected import ShadowDetailOutRejected
    from ..models.shadow_detail_out_results import ShadowDetailOutResults
    from ..models.shadow_field_out import ShadowFieldOut
    from ..models.shadow_sample_out import ShadowSampleOut


T = TypeVar("T", bound="ShadowDetailOut")


@_attrs_define
class ShadowDetailOut:
    """A shadow run with its draft, and the details of the comparison.

    Attributes:
        id (str): Id of the shadow run.
        state (str): * `running` - Running
            * `stopping` - Stopping
            * `stopped` - Stopped
            * `done` - Done
            * `failed` - Failed
        revision (int): Live revision that the draft is compared with.
        based_on (int): Newest revision at the start; the draft is promoted on top of it.
        promoted (int | None): Revision that the draft was published as.
        follow (bool): True if it runs on live traffic.
        since (datetime.datetime): Start of the time range.
        until (datetime.datetime | None): Null if it follows live traffic.
        most_events (int): Events after which it ends, or soon after; 0 for no limit.
        created_at (datetime.datetime): Time of creation.
        started_at (datetime.datetime | None): Null while it waits for the cell.
        finished_at (datetime.datetime | None): End time; null while it is running.
        share (float | None): Compared part, 0 to 1; null at the start, and if it follows live traffic.
        compared_until (datetime.datetime | None): Ingest time up to which all events are compared.
        events (int): Events compared so far.
        results (ShadowDetailOutResults): Messages by destination and result.
        error (str): Why it waits or failed.
        why_stopped (str): Why Penstock stopped it; empty if a person did, or nobody.
        spec (PipeSpec):
        field_differences (list[ShadowFieldOut]): The most frequent first, by destination.
        rejected (ShadowDetailOutRejected): Messages that only the draft rejects, by cause.
        samples (list[ShadowSampleOut]): Up to 5 of each result and destination, the newest first.
        cost (None | ShadowCostOut): Null while nothing was timed.
        by (None | str | Unset): User who requested it; null if Penstock did or the user was deleted.
    """

    id: str
    state: str
    revision: int
    based_on: int
    promoted: int | None
    follow: bool
    since: datetime.datetime
    until: datetime.datetime | None
    most_events: int
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    finished_at: datetime.datetime | None
    share: float | None
    compared_until: datetime.datetime | None
    events: int
    results: ShadowDetailOutResults
    error: str
    why_stopped: str
    spec: PipeSpec
    field_differences: list[ShadowFieldOut]
    rejected: ShadowDetailOutRejected
    samples: list[ShadowSampleOut]
    cost: None | ShadowCostOut
    by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415
        from ..models.shadow_cost_out import ShadowCostOut  # noqa: PLC0415
        from ..models.shadow_detail_out_rejected import ShadowDetailOutRejected  # noqa: PLC0415
        from ..models.shadow_detail_out_results import ShadowDetailOutResults  # noqa: PLC0415
        from ..models.shadow_field_out import ShadowFieldOut  # noqa: PLC0415
        from ..models.shadow_sample_out import ShadowSampleOut  # noqa: PLC0415

        id = self.id

        state = self.state

        revision = self.revision

        based_on = self.based_on

        promoted: int | None
        promoted = self.promoted

        follow = self.follow

        since = self.since.isoformat()

        until: None | str
        if isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        most_events = self.most_events

        created_at = self.created_at.isoformat()

        started_at: None | str
        if isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        share: float | None
        share = self.share

        compared_until: None | str
        if isinstance(self.compared_until, datetime.datetime):
            compared_until = self.compared_until.isoformat()
        else:
            compared_until = self.compared_until

        events = self.events

        results = self.results.to_dict()

        error = self.error

        why_stopped = self.why_stopped

        spec = self.spec.to_dict()

        field_differences = []
        for field_differences_item_data in self.field_differences:
            field_differences_item = field_differences_item_data.to_dict()
            field_differences.append(field_differences_item)

        rejected = self.rejected.to_dict()

        samples = []
        for samples_item_data in self.samples:
            samples_item = samples_item_data.to_dict()
            samples.append(samples_item)

        cost: dict[str, Any] | None
        if isinstance(self.cost, ShadowCostOut):
            cost = self.cost.to_dict()
        else:
            cost = self.cost

        by: None | str | Unset
        if isinstance(self.by, Unset):
            by = UNSET
        else:
            by = self.by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "state": state,
                "revision": revision,
                "based_on": based_on,
                "promoted": promoted,
                "follow": follow,
                "since": since,
                "until": until,
                "most_events": most_events,
                "created_at": created_at,
                "started_at": started_at,
                "finished_at": finished_at,
                "share": share,
                "compared_until": compared_until,
                "events": events,
                "results": results,
                "error": error,
                "why_stopped": why_stopped,
                "spec": spec,
                "field_differences": field_differences,
                "rejected": rejected,
                "samples": samples,
                "cost": cost,
            }
        )
        if by is not UNSET:
            field_dict["by"] = by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415
        from ..models.shadow_cost_out import ShadowCostOut  # noqa: PLC0415
        from ..models.shadow_detail_out_rejected import ShadowDetailOutRejected  # noqa: PLC0415
        from ..models.shadow_detail_out_results import ShadowDetailOutResults  # noqa: PLC0415
        from ..models.shadow_field_out import ShadowFieldOut  # noqa: PLC0415
        from ..models.shadow_sample_out import ShadowSampleOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        state = d.pop("state")

        revision = d.pop("revision")

        based_on = d.pop("based_on")

        def _parse_promoted(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        promoted = _parse_promoted(d.pop("promoted"))

        follow = d.pop("follow")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        def _parse_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                until_type_0 = datetime.datetime.fromisoformat(data)

                return until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        until = _parse_until(d.pop("until"))

        most_events = d.pop("most_events")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_started_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        started_at = _parse_started_at(d.pop("started_at"))

        def _parse_finished_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        def _parse_share(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        share = _parse_share(d.pop("share"))

        def _parse_compared_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                compared_until_type_0 = datetime.datetime.fromisoformat(data)

                return compared_until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        compared_until = _parse_compared_until(d.pop("compared_until"))

        events = d.pop("events")

        results = ShadowDetailOutResults.from_dict(d.pop("results"))

        error = d.pop("error")

        why_stopped = d.pop("why_stopped")

        spec = PipeSpec.from_dict(d.pop("spec"))

        field_differences = []
        _field_differences = d.pop("field_differences")
        for field_differences_item_data in _field_differences:
            field_differences_item = ShadowFieldOut.from_dict(field_differences_item_data)

            field_differences.append(field_differences_item)

        rejected = ShadowDetailOutRejected.from_dict(d.pop("rejected"))

        samples = []
        _samples = d.pop("samples")
        for samples_item_data in _samples:
            samples_item = ShadowSampleOut.from_dict(samples_item_data)

            samples.append(samples_item)

        def _parse_cost(data: object) -> None | ShadowCostOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                cost_type_0 = ShadowCostOut.from_dict(data)

                return cost_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ShadowCostOut, data)

        cost = _parse_cost(d.pop("cost"))

        def _parse_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        by = _parse_by(d.pop("by", UNSET))

        shadow_detail_out = cls(
            id=id,
            state=state,
            revision=revision,
            based_on=based_on,
            promoted=promoted,
            follow=follow,
            since=since,
            until=until,
            most_events=most_events,
            created_at=created_at,
            started_at=started_at,
            finished_at=finished_at,
            share=share,
            compared_until=compared_until,
            events=events,
            results=results,
            error=error,
            why_stopped=why_stopped,
            spec=spec,
            field_differences=field_differences,
            rejected=rejected,
            samples=samples,
            cost=cost,
            by=by,
        )

        shadow_detail_out.additional_properties = d
        return shadow_detail_out

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
