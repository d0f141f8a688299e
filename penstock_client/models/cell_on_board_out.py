from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.affected_out import AffectedOut
    from ..models.verdict_out import VerdictOut


T = TypeVar("T", bound="CellOnBoardOut")


@_attrs_define
class CellOnBoardOut:
    """Cell on the status board.

    Attributes:
        id (str): Id of the cell.
        verdict (None | VerdictOut): Verdict on the cell's health; null if there is none yet.
        asleep (bool): True if the cell has been stopped because it has no traffic.
        lanes_wanted (int): Number of lanes that the cell should run.
        lanes_running (int): Desired lanes that send heartbeats.
        oldest_heartbeat_at (datetime.datetime | None): Newest heartbeat of the expected process that has been silent
            longest; null if one sent none.
        lag_us (int | None): Of the slower of process and transmit.
        stuck (bool): True if messages wait and none is settled.
        in_per_s (float | None): Events per second that enter; null if there is no recent report.
        lags_us (list[int | None]): Lag in each five minutes of the last hour, oldest first; null: not measured.
        rates (list[float | None]): Events in per second in each five minutes of the last hour, oldest first.
        lost (int): Messages lost in the last 24 hours, as far as `losses/` lists them.
        affected (AffectedOut): Number of tenants and pipes that a problem affects.
    """

    id: str
    verdict: None | VerdictOut
    asleep: bool
    lanes_wanted: int
    lanes_running: int
    oldest_heartbeat_at: datetime.datetime | None
    lag_us: int | None
    stuck: bool
    in_per_s: float | None
    lags_us: list[int | None]
    rates: list[float | None]
    lost: int
    affected: AffectedOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.affected_out import AffectedOut  # noqa: PLC0415
        from ..models.verdict_out import VerdictOut  # noqa: PLC0415

        id = self.id

        verdict: dict[str, Any] | None
        if isinstance(self.verdict, VerdictOut):
            verdict = self.verdict.to_dict()
        else:
            verdict = self.verdict

        asleep = self.asleep

        lanes_wanted = self.lanes_wanted

        lanes_running = self.lanes_running

        oldest_heartbeat_at: None | str
        if isinstance(self.oldest_heartbeat_at, datetime.datetime):
            oldest_heartbeat_at = self.oldest_heartbeat_at.isoformat()
        else:
            oldest_heartbeat_at = self.oldest_heartbeat_at

        lag_us: int | None
        lag_us = self.lag_us

        stuck = self.stuck

        in_per_s: float | None
        in_per_s = self.in_per_s

        lags_us = []
        for lags_us_item_data in self.lags_us:
            lags_us_item: int | None
            lags_us_item = lags_us_item_data
            lags_us.append(lags_us_item)

        rates = []
        for rates_item_data in self.rates:
            rates_item: float | None
            rates_item = rates_item_data
            rates.append(rates_item)

        lost = self.lost

        affected = self.affected.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "verdict": verdict,
                "asleep": asleep,
                "lanes_wanted": lanes_wanted,
                "lanes_running": lanes_running,
                "oldest_heartbeat_at": oldest_heartbeat_at,
                "lag_us": lag_us,
                "stuck": stuck,
                "in_per_s": in_per_s,
                "lags_us": lags_us,
                "rates": rates,
                "lost": lost,
                "affected": affected,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.affected_out import AffectedOut  # noqa: PLC0415
        from ..models.verdict_out import VerdictOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

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

        asleep = d.pop("asleep")

        lanes_wanted = d.pop("lanes_wanted")

        lanes_running = d.pop("lanes_running")

        def _parse_oldest_heartbeat_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                oldest_heartbeat_at_type_0 = datetime.datetime.fromisoformat(data)

                return oldest_heartbeat_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        oldest_heartbeat_at = _parse_oldest_heartbeat_at(d.pop("oldest_heartbeat_at"))

        def _parse_lag_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        lag_us = _parse_lag_us(d.pop("lag_us"))

        stuck = d.pop("stuck")

        def _parse_in_per_s(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        in_per_s = _parse_in_per_s(d.pop("in_per_s"))

        lags_us = []
        _lags_us = d.pop("lags_us")
        for lags_us_item_data in _lags_us:

            def _parse_lags_us_item(data: object) -> int | None:
                if data is None:
                    return data
                return cast(int | None, data)

            lags_us_item = _parse_lags_us_item(lags_us_item_data)

            lags_us.append(lags_us_item)

        rates = []
        _rates = d.pop("rates")
        for rates_item_data in _rates:

            def _parse_rates_item(data: object) -> float | None:
                if data is None:
                    return data
                return cast(float | None, data)

            rates_item = _parse_rates_item(rates_item_data)

            rates.append(rates_item)

        lost = d.pop("lost")

        affected = AffectedOut.from_dict(d.pop("affected"))

        cell_on_board_out = cls(
            id=id,
            verdict=verdict,
            asleep=asleep,
            lanes_wanted=lanes_wanted,
            lanes_running=lanes_running,
            oldest_heartbeat_at=oldest_heartbeat_at,
            lag_us=lag_us,
            stuck=stuck,
            in_per_s=in_per_s,
            lags_us=lags_us,
            rates=rates,
            lost=lost,
            affected=affected,
        )

        cell_on_board_out.additional_properties = d
        return cell_on_board_out

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
