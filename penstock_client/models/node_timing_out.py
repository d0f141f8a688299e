from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.percentiles_out import PercentilesOut


T = TypeVar("T", bound="NodeTimingOut")


@_attrs_define
class NodeTimingOut:
    """Lags and process durations at one node, over the messages that left it.

    Attributes:
        node (str): Node of the pipe's graph.
        lag_in (None | PercentilesOut): `now - event_time` on arrival; negative if the source's clock is ahead of
            Penstock's.
        lag_out (None | PercentilesOut): `now - event_time` on departure.
        process_duration (None | PercentilesOut): Time from arrival to departure of each message.
    """

    node: str
    lag_in: None | PercentilesOut
    lag_out: None | PercentilesOut
    process_duration: None | PercentilesOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.percentiles_out import PercentilesOut  # noqa: PLC0415

        node = self.node

        lag_in: dict[str, Any] | None
        if isinstance(self.lag_in, PercentilesOut):
            lag_in = self.lag_in.to_dict()
        else:
            lag_in = self.lag_in

        lag_out: dict[str, Any] | None
        if isinstance(self.lag_out, PercentilesOut):
            lag_out = self.lag_out.to_dict()
        else:
            lag_out = self.lag_out

        process_duration: dict[str, Any] | None
        if isinstance(self.process_duration, PercentilesOut):
            process_duration = self.process_duration.to_dict()
        else:
            process_duration = self.process_duration

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "node": node,
                "lag_in": lag_in,
                "lag_out": lag_out,
                "process_duration": process_duration,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.percentiles_out import PercentilesOut  # noqa: PLC0415

        d = dict(src_dict)
        node = d.pop("node")

        def _parse_lag_in(data: object) -> None | PercentilesOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lag_in_type_0 = PercentilesOut.from_dict(data)

                return lag_in_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PercentilesOut, data)

        lag_in = _parse_lag_in(d.pop("lag_in"))

        def _parse_lag_out(data: object) -> None | PercentilesOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lag_out_type_0 = PercentilesOut.from_dict(data)

                return lag_out_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PercentilesOut, data)

        lag_out = _parse_lag_out(d.pop("lag_out"))

        def _parse_process_duration(data: object) -> None | PercentilesOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                process_duration_type_0 = PercentilesOut.from_dict(data)

                return process_duration_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PercentilesOut, data)

        process_duration = _parse_process_duration(d.pop("process_duration"))

        node_timing_out = cls(
            node=node,
            lag_in=lag_in,
            lag_out=lag_out,
            process_duration=process_duration,
        )

        node_timing_out.additional_properties = d
        return node_timing_out

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
