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
    from ..models.move_out_chosen import MoveOutChosen


T = TypeVar("T", bound="MoveOut")


@_attrs_define
class MoveOut:
    """A move (a redrive of dead letters, or a release of held messages) and its progress.

    Attributes:
        id (str): Id of the move.
        destination (str): Name of the destination in the spec.
        what (str): * `release` - Release
            * `redrive` - Redrive
        state (str): * `running` - Running
            * `aborting` - Aborting
            * `aborted` - Aborted
            * `done` - Done
        chosen (MoveOutChosen): Selection of messages, as it was requested.
        total (int): Number of messages to move.
        moved (int): Messages moved so far.
        skipped (int): Messages that were no longer on the topic, or could not be read.
        rate_per_s (float): Messages per second at most.
        probe (bool): True for a probe: one message, sent as a test.
        error (str): Reason why it waits.
        created_at (datetime.datetime): Time of creation.
        finished_at (datetime.datetime | None): End time; null while it is running.
        by (None | str | Unset): User who requested it; null if Penstock did or the user was deleted.
    """

    id: str
    destination: str
    what: str
    state: str
    chosen: MoveOutChosen
    total: int
    moved: int
    skipped: int
    rate_per_s: float
    probe: bool
    error: str
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.move_out_chosen import MoveOutChosen  # noqa: PLC0415

        id = self.id

        destination = self.destination

        what = self.what

        state = self.state

        chosen = self.chosen.to_dict()

        total = self.total

        moved = self.moved

        skipped = self.skipped

        rate_per_s = self.rate_per_s

        probe = self.probe

        error = self.error

        created_at = self.created_at.isoformat()

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

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
                "destination": destination,
                "what": what,
                "state": state,
                "chosen": chosen,
                "total": total,
                "moved": moved,
                "skipped": skipped,
                "rate_per_s": rate_per_s,
                "probe": probe,
                "error": error,
                "created_at": created_at,
                "finished_at": finished_at,
            }
        )
        if by is not UNSET:
            field_dict["by"] = by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.move_out_chosen import MoveOutChosen  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        destination = d.pop("destination")

        what = d.pop("what")

        state = d.pop("state")

        chosen = MoveOutChosen.from_dict(d.pop("chosen"))

        total = d.pop("total")

        moved = d.pop("moved")

        skipped = d.pop("skipped")

        rate_per_s = d.pop("rate_per_s")

        probe = d.pop("probe")

        error = d.pop("error")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

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

        def _parse_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        by = _parse_by(d.pop("by", UNSET))

        move_out = cls(
            id=id,
            destination=destination,
            what=what,
            state=state,
            chosen=chosen,
            total=total,
            moved=moved,
            skipped=skipped,
            rate_per_s=rate_per_s,
            probe=probe,
            error=error,
            created_at=created_at,
            finished_at=finished_at,
            by=by,
        )

        move_out.additional_properties = d
        return move_out

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
