from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="ReplayIn")


@_attrs_define
class ReplayIn:
    """Replay to start: a range of ingest times, and optionally a selection of its events.

    Attributes:
        since (datetime.datetime): Ingest time of the first events.
        until (datetime.datetime): Ingest time before which the last events arrived, in the past; at most 7 days later.
        revision (int | None | Unset): Number of a published revision, whose steps and routes run. Default: the live
            one.
        destinations (list[str] | Unset): Active destinations of the revision, of type `http` or `topic`. Default: all
            of these.
        where (str | Unset): Condition over `body` and `meta`, as of a filter step. Default: all events. Default: ''.
        keys (list[str] | Unset): Only events with one of these keys.
        ids (list[str] | Unset): Only events with one of these message ids (`webhook-id`).
        revisions (list[int] | Unset): Only events accepted under one of these revisions, as of a backfill; the range
            may then be longer.
        rate_per_s (float | Unset): Messages per second, at most, over all destinations. Your quota `replay_units_per_s`
            is the limit. Default: 50.0.
        rehearsal (bool | Unset): Only count the events and messages, and send nothing. Default: False.
    """

    since: datetime.datetime
    until: datetime.datetime
    revision: int | None | Unset = UNSET
    destinations: list[str] | Unset = UNSET
    where: str | Unset = ""
    keys: list[str] | Unset = UNSET
    ids: list[str] | Unset = UNSET
    revisions: list[int] | Unset = UNSET
    rate_per_s: float | Unset = 50.0
    rehearsal: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        since = self.since.isoformat()

        until = self.until.isoformat()

        revision: int | None | Unset
        if isinstance(self.revision, Unset):
            revision = UNSET
        else:
            revision = self.revision

        destinations: list[str] | Unset = UNSET
        if not isinstance(self.destinations, Unset):
            destinations = self.destinations

        where = self.where

        keys: list[str] | Unset = UNSET
        if not isinstance(self.keys, Unset):
            keys = self.keys

        ids: list[str] | Unset = UNSET
        if not isinstance(self.ids, Unset):
            ids = self.ids

        revisions: list[int] | Unset = UNSET
        if not isinstance(self.revisions, Unset):
            revisions = self.revisions

        rate_per_s = self.rate_per_s

        rehearsal = self.rehearsal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "since": since,
                "until": until,
            }
        )
        if revision is not UNSET:
            field_dict["revision"] = revision
        if destinations is not UNSET:
            field_dict["destinations"] = destinations
        if where is not UNSET:
            field_dict["where"] = where
        if keys is not UNSET:
            field_dict["keys"] = keys
        if ids is not UNSET:
            field_dict["ids"] = ids
        if revisions is not UNSET:
            field_dict["revisions"] = revisions
        if rate_per_s is not UNSET:
            field_dict["rate_per_s"] = rate_per_s
        if rehearsal is not UNSET:
            field_dict["rehearsal"] = rehearsal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        since = datetime.datetime.fromisoformat(d.pop("since"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        def _parse_revision(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        revision = _parse_revision(d.pop("revision", UNSET))

        destinations = cast(list[str], d.pop("destinations", UNSET))

        where = d.pop("where", UNSET)

        keys = cast(list[str], d.pop("keys", UNSET))

        ids = cast(list[str], d.pop("ids", UNSET))

        revisions = cast(list[int], d.pop("revisions", UNSET))

        rate_per_s = d.pop("rate_per_s", UNSET)

        rehearsal = d.pop("rehearsal", UNSET)

        replay_in = cls(
            since=since,
            until=until,
            revision=revision,
            destinations=destinations,
            where=where,
            keys=keys,
            ids=ids,
            revisions=revisions,
            rate_per_s=rate_per_s,
            rehearsal=rehearsal,
        )

        replay_in.additional_properties = d
        return replay_in

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
