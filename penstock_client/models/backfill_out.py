from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="BackfillOut")


@_attrs_define
class BackfillOut:
    """Earlier events for a new destination: a replay that Penstock starts.

    Attributes:
        id (str): Id of the backfill.
        destination (str): Name of the new destination.
        revision (int): Number of the revision that brought the destination.
        beginning (str): `from` of the destination in that revision.
        state (str): * `waiting` - waiting
            * `cancelled` - cancelled
            * `not started` - not started
            * `running` - running
            * `paused` - paused
            * `aborting` - aborting
            * `aborted` - aborted
            * `done` - done
            * `failed` - failed
        reason (str): Why it waits, or why it was not started; empty for any other state.
        created_at (datetime.datetime): When the revision became live.
        replay (None | str): Id of the replay.
    """

    id: str
    destination: str
    revision: int
    beginning: str
    state: str
    reason: str
    created_at: datetime.datetime
    replay: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        destination = self.destination

        revision = self.revision

        beginning = self.beginning

        state = self.state

        reason = self.reason

        created_at = self.created_at.isoformat()

        replay: None | str
        replay = self.replay

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "destination": destination,
                "revision": revision,
                "beginning": beginning,
                "state": state,
                "reason": reason,
                "created_at": created_at,
                "replay": replay,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        destination = d.pop("destination")

        revision = d.pop("revision")

        beginning = d.pop("beginning")

        state = d.pop("state")

        reason = d.pop("reason")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_replay(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        replay = _parse_replay(d.pop("replay"))

        backfill_out = cls(
            id=id,
            destination=destination,
            revision=revision,
            beginning=beginning,
            state=state,
            reason=reason,
            created_at=created_at,
            replay=replay,
        )

        backfill_out.additional_properties = d
        return backfill_out

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
