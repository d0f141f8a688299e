from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.destination_out import DestinationOut
    from ..models.health_out import HealthOut
    from ..models.move_out import MoveOut
    from ..models.waiting_out import WaitingOut


T = TypeVar("T", bound="StandingOut")


@_attrs_define
class StandingOut:
    """Delivery state of a destination, with its held messages, dead letters and running moves.

    Attributes:
        destination (DestinationOut): A destination of a pipe, as it is used now.
        holds (bool): True if its messages are held, because the destination or its pipe is paused or suspended.
        held (int): Messages that are held.
        held_since (datetime.datetime | None): Time since which messages are held; null if none are.
        dead (list[WaitingOut]): Dead letters by cause.
        health (HealthOut | None): Null if the destination has had no failure and no waiting message.
        moves (list[MoveOut]): Redrives and releases in progress.
    """

    destination: DestinationOut
    holds: bool
    held: int
    held_since: datetime.datetime | None
    dead: list[WaitingOut]
    health: HealthOut | None
    moves: list[MoveOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.destination_out import DestinationOut  # noqa: PLC0415
        from ..models.health_out import HealthOut  # noqa: PLC0415
        from ..models.move_out import MoveOut  # noqa: PLC0415
        from ..models.waiting_out import WaitingOut  # noqa: PLC0415

        destination = self.destination.to_dict()

        holds = self.holds

        held = self.held

        held_since: None | str
        if isinstance(self.held_since, datetime.datetime):
            held_since = self.held_since.isoformat()
        else:
            held_since = self.held_since

        dead = []
        for dead_item_data in self.dead:
            dead_item = dead_item_data.to_dict()
            dead.append(dead_item)

        health: dict[str, Any] | None
        if isinstance(self.health, HealthOut):
            health = self.health.to_dict()
        else:
            health = self.health

        moves = []
        for moves_item_data in self.moves:
            moves_item = moves_item_data.to_dict()
            moves.append(moves_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "destination": destination,
                "holds": holds,
                "held": held,
                "held_since": held_since,
                "dead": dead,
                "health": health,
                "moves": moves,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.destination_out import DestinationOut  # noqa: PLC0415
        from ..models.health_out import HealthOut  # noqa: PLC0415
        from ..models.move_out import MoveOut  # noqa: PLC0415
        from ..models.waiting_out import WaitingOut  # noqa: PLC0415

        d = dict(src_dict)
        destination = DestinationOut.from_dict(d.pop("destination"))

        holds = d.pop("holds")

        held = d.pop("held")

        def _parse_held_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                held_since_type_0 = datetime.datetime.fromisoformat(data)

                return held_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        held_since = _parse_held_since(d.pop("held_since"))

        dead = []
        _dead = d.pop("dead")
        for dead_item_data in _dead:
            dead_item = WaitingOut.from_dict(dead_item_data)

            dead.append(dead_item)

        def _parse_health(data: object) -> HealthOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                health_type_0 = HealthOut.from_dict(data)

                return health_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(HealthOut | None, data)

        health = _parse_health(d.pop("health"))

        moves = []
        _moves = d.pop("moves")
        for moves_item_data in _moves:
            moves_item = MoveOut.from_dict(moves_item_data)

            moves.append(moves_item)

        standing_out = cls(
            destination=destination,
            holds=holds,
            held=held,
            held_since=held_since,
            dead=dead,
            health=health,
            moves=moves,
        )

        standing_out.additional_properties = d
        return standing_out

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
