from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.cell_out_heard import CellOutHeard
    from ..models.cell_out_lanes import CellOutLanes
    from ..models.lease_out import LeaseOut
    from ..models.pause_out import PauseOut
    from ..models.verdict_out import VerdictOut


T = TypeVar("T", bound="CellOut")


@_attrs_define
class CellOut:
    """Cell with its verdict, its lanes, its lease and its pauses.

    Attributes:
        id (str): Id of the cell.
        epoch (int): Number of the cell's lease, which grows with each new holder.
        lanes (CellOutLanes): Desired number of lanes, by kind.
        heard (CellOutHeard): Processes with a heartbeat in the last 10 s, by kind.
        pipes (int): Number of pipes.
        partitions (int | None): Partitions of its topics; null: the installation's default, until they are created.
        dedicated_to (None | str): The only tenant whose pipes are placed on the cell; null: all tenants.
        sleeps_after_s (int | None): Seconds without work after which the cell sleeps; null: never.
        asleep (bool): True if no lane runs until the next message arrives.
        verdict (None | VerdictOut): Verdict on the cell's health; null if there is none yet.
        lease (LeaseOut | None): Lease of the cell's controller; null if nobody holds it.
        pauses (list[PauseOut]): Pauses of controllers that are in force.
    """

    id: str
    epoch: int
    lanes: CellOutLanes
    heard: CellOutHeard
    pipes: int
    partitions: int | None
    dedicated_to: None | str
    sleeps_after_s: int | None
    asleep: bool
    verdict: None | VerdictOut
    lease: LeaseOut | None
    pauses: list[PauseOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cell_out_heard import CellOutHeard  # noqa: PLC0415
        from ..models.cell_out_lanes import CellOutLanes  # noqa: PLC0415
        from ..models.lease_out import LeaseOut  # noqa: PLC0415
        from ..models.pause_out import PauseOut  # noqa: PLC0415
        from ..models.verdict_out import VerdictOut  # noqa: PLC0415

        id = self.id

        epoch = self.epoch

        lanes = self.lanes.to_dict()

        heard = self.heard.to_dict()

        pipes = self.pipes

        partitions: int | None
        partitions = self.partitions

        dedicated_to: None | str
        dedicated_to = self.dedicated_to

        sleeps_after_s: int | None
        sleeps_after_s = self.sleeps_after_s

        asleep = self.asleep

        verdict: dict[str, Any] | None
        if isinstance(self.verdict, VerdictOut):
            verdict = self.verdict.to_dict()
        else:
            verdict = self.verdict

        lease: dict[str, Any] | None
        if isinstance(self.lease, LeaseOut):
            lease = self.lease.to_dict()
        else:
            lease = self.lease

        pauses = []
        for pauses_item_data in self.pauses:
            pauses_item = pauses_item_data.to_dict()
            pauses.append(pauses_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "epoch": epoch,
                "lanes": lanes,
                "heard": heard,
                "pipes": pipes,
                "partitions": partitions,
                "dedicated_to": dedicated_to,
                "sleeps_after_s": sleeps_after_s,
                "asleep": asleep,
                "verdict": verdict,
                "lease": lease,
                "pauses": pauses,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cell_out_heard import CellOutHeard  # noqa: PLC0415
        from ..models.cell_out_lanes import CellOutLanes  # noqa: PLC0415
        from ..models.lease_out import LeaseOut  # noqa: PLC0415
        from ..models.pause_out import PauseOut  # noqa: PLC0415
        from ..models.verdict_out import VerdictOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        epoch = d.pop("epoch")

        lanes = CellOutLanes.from_dict(d.pop("lanes"))

        heard = CellOutHeard.from_dict(d.pop("heard"))

        pipes = d.pop("pipes")

        def _parse_partitions(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        partitions = _parse_partitions(d.pop("partitions"))

        def _parse_dedicated_to(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        dedicated_to = _parse_dedicated_to(d.pop("dedicated_to"))

        def _parse_sleeps_after_s(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        sleeps_after_s = _parse_sleeps_after_s(d.pop("sleeps_after_s"))

        asleep = d.pop("asleep")

        def _parse_verdict(data: object) -> None | VerdictOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                verdict_type_0 = VerdictOut.from_dict(data)

                return verdict_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | VerdictOut, data)

        verdict = _parse_verdict(d.pop("verdict"))

        def _parse_lease(data: object) -> LeaseOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lease_type_0 = LeaseOut.from_dict(data)

                return lease_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LeaseOut | None, data)

        lease = _parse_lease(d.pop("lease"))

        pauses = []
        _pauses = d.pop("pauses")
        for pauses_item_data in _pauses:
            pauses_item = PauseOut.from_dict(pauses_item_data)

            pauses.append(pauses_item)

        cell_out = cls(
            id=id,
            epoch=epoch,
            lanes=lanes,
            heard=heard,
            pipes=pipes,
            partitions=partitions,
            dedicated_to=dedicated_to,
            sleeps_after_s=sleeps_after_s,
            asleep=asleep,
            verdict=verdict,
            lease=lease,
            pauses=pauses,
        )

        cell_out.additional_properties = d
        return cell_out

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
