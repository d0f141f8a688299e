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
    from ..models.replay_out_units import ReplayOutUnits


T = TypeVar("T", bound="ReplayOut")


@_attrs_define
class ReplayOut:
    """A replay and its progress.

    Attributes:
        id (str): Id of the replay.
        state (str): * `running` - Running
            * `paused` - Paused
            * `aborting` - Aborting
            * `aborted` - Aborted
            * `done` - Done
            * `failed` - Failed
        since (datetime.datetime): Start of the time range.
        until (datetime.datetime): End of the time range, excluded; null if it is open.
        revision (int): Number of the revision.
        destinations (list[str]): Names of the destinations; empty for all.
        where (str): Condition on the events; empty for all.
        keys (list[str]): Keys to which it is limited; empty for all.
        ids (list[str]): The first 100 message ids; `id_count` is the number of all.
        id_count (int): Return the number of ids.
        rate_per_s (float): Messages per second at most.
        rehearsal (bool): True if nothing is sent.
        revisions (list[int]): Only events accepted under these revisions; empty for all.
        repeats (None | str): Id of the replay whose failed events it repeats.
        created_at (datetime.datetime): Time of creation.
        started_at (datetime.datetime | None): Null while it waits for the cell.
        finished_at (datetime.datetime | None): When all messages were handed to delivery, or when it ended early.
        expected_end (datetime.datetime | None): Estimate of `finished_at` from its speed so far; null if it is not
            running.
        share (float | None): Read part of the range, 0 to 1; null at the start.
        asked (int): Events selected so far.
        units (ReplayOutUnits): Messages sent so far by destination; in a rehearsal, those that would be sent.
        filtered (int): Messages that the steps or routes ended on purpose.
        failed (int): Messages that failed in a step.
        size_bytes (int): Size of the bodies sent, or that would be sent.
        error (str): Why it waits or failed, or from when on the log has the events if the first ones have expired.
        backfill (None | str | Unset): Name of the new destination, if it is a backfill; `backfill_id` names the
            backfill.
        backfill_id (None | str | Unset): Id of the backfill, if it is the replay of one.
        by (None | str | Unset): User who requested it; null if Penstock did or the user was deleted.
    """

    id: str
    state: str
    since: datetime.datetime
    until: datetime.datetime
    revision: int
    destinations: list[str]
    where: str
    keys: list[str]
    ids: list[str]
    id_count: int
    rate_per_s: float
    rehearsal: bool
    revisions: list[int]
    repeats: None | str
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    finished_at: datetime.datetime | None
    expected_end: datetime.datetime | None
    share: float | None
    asked: int
    units: ReplayOutUnits
    filtered: int
    failed: int
    size_bytes: int
    error: str
    backfill: None | str | Unset = UNSET
    backfill_id: None | str | Unset = UNSET
    by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.replay_out_units import ReplayOutUnits  # noqa: PLC0415

        id = self.id

        state = self.state

        since = self.since.isoformat()

        until = self.until.isoformat()

        revision = self.revision

        destinations = self.destinations

        where = self.where

        keys = self.keys

        ids = self.ids

        id_count = self.id_count

        rate_per_s = self.rate_per_s

        rehearsal = self.rehearsal

        revisions = self.revisions

        repeats: None | str
        repeats = self.repeats

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

        expected_end: None | str
        if isinstance(self.expected_end, datetime.datetime):
            expected_end = self.expected_end.isoformat()
        else:
            expected_end = self.expected_end

        share: float | None
        share = self.share

        asked = self.asked

        units = self.units.to_dict()

        filtered = self.filtered

        failed = self.failed

        size_bytes = self.size_bytes

        error = self.error

        backfill: None | str | Unset
        if isinstance(self.backfill, Unset):
            backfill = UNSET
        else:
            backfill = self.backfill

        backfill_id: None | str | Unset
        if isinstance(self.backfill_id, Unset):
            backfill_id = UNSET
        else:
            backfill_id = self.backfill_id

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
                "since": since,
                "until": until,
                "revision": revision,
                "destinations": destinations,
                "where": where,
                "keys": keys,
                "ids": ids,
                "id_count": id_count,
                "rate_per_s": rate_per_s,
                "rehearsal": rehearsal,
                "revisions": revisions,
                "repeats": repeats,
                "created_at": created_at,
                "started_at": started_at,
                "finished_at": finished_at,
                "expected_end": expected_end,
                "share": share,
                "asked": asked,
                "units": units,
                "filtered": filtered,
                "failed": failed,
                "size_bytes": size_bytes,
                "error": error,
            }
        )
        if backfill is not UNSET:
            field_dict["backfill"] = backfill
        if backfill_id is not UNSET:
            field_dict["backfill_id"] = backfill_id
        if by is not UNSET:
            field_dict["by"] = by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.replay_out_units import ReplayOutUnits  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        state = d.pop("state")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        revision = d.pop("revision")

        destinations = cast(list[str], d.pop("destinations"))

        where = d.pop("where")

        keys = cast(list[str], d.pop("keys"))

        ids = cast(list[str], d.pop("ids"))

        id_count = d.pop("id_count")

        rate_per_s = d.pop("rate_per_s")

        rehearsal = d.pop("rehearsal")

        revisions = cast(list[int], d.pop("revisions"))

        def _parse_repeats(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        repeats = _parse_repeats(d.pop("repeats"))

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

        def _parse_expected_end(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expected_end_type_0 = datetime.datetime.fromisoformat(data)

                return expected_end_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expected_end = _parse_expected_end(d.pop("expected_end"))

        def _parse_share(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        share = _parse_share(d.pop("share"))

        asked = d.pop("asked")

        units = ReplayOutUnits.from_dict(d.pop("units"))

        filtered = d.pop("filtered")

        failed = d.pop("failed")

        size_bytes = d.pop("size_bytes")

        error = d.pop("error")

        def _parse_backfill(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        backfill = _parse_backfill(d.pop("backfill", UNSET))

        def _parse_backfill_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        backfill_id = _parse_backfill_id(d.pop("backfill_id", UNSET))

        def _parse_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        by = _parse_by(d.pop("by", UNSET))

        replay_out = cls(
            id=id,
            state=state,
            since=since,
            until=until,
            revision=revision,
            destinations=destinations,
            where=where,
            keys=keys,
            ids=ids,
            id_count=id_count,
            rate_per_s=rate_per_s,
            rehearsal=rehearsal,
            revisions=revisions,
            repeats=repeats,
            created_at=created_at,
            started_at=started_at,
            finished_at=finished_at,
            expected_end=expected_end,
            share=share,
            asked=asked,
            units=units,
            filtered=filtered,
            failed=failed,
            size_bytes=size_bytes,
            error=error,
            backfill=backfill,
            backfill_id=backfill_id,
            by=by,
        )

        replay_out.additional_properties = d
        return replay_out

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
