from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.node_timing_out import NodeTimingOut
    from ..models.part_out import PartOut
    from ..models.percentiles_out import PercentilesOut
    from ..models.shares_out import SharesOut


T = TypeVar("T", bound="TimingOut")


@_attrs_define
class TimingOut:
    """Latency of a pipe within a time range.

    Attributes:
        nodes (list[NodeTimingOut]): Nodes of the pipe's graph.
        parts (list[PartOut]): Breakdown of the time of delivered messages into slices, in the order of processing.
        whole (None | PercentilesOut): Time from ingest to the destination's response.
        mean_us (int | None): Mean of the whole.
        source_lag (None | PercentilesOut): Time from `event_time` to ingest, by the source's clock; not part of the
            whole.
        end_to_end_us (int | None): 95th percentile of the time from `event_time` to the destination's response.
        skewed (bool): True if the clock of a source is ahead of Penstock's.
        range_ (str): Time range of the figures.
        series (list[SharesOut]): Shares of time by node, for each interval.
    """

    nodes: list[NodeTimingOut]
    parts: list[PartOut]
    whole: None | PercentilesOut
    mean_us: int | None
    source_lag: None | PercentilesOut
    end_to_end_us: int | None
    skewed: bool
    range_: str
    series: list[SharesOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.node_timing_out import NodeTimingOut  # noqa: PLC0415
        from ..models.part_out import PartOut  # noqa: PLC0415
        from ..models.percentiles_out import PercentilesOut  # noqa: PLC0415
        from ..models.shares_out import SharesOut  # noqa: PLC0415

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        parts = []
        for parts_item_data in self.parts:
            parts_item = parts_item_data.to_dict()
            parts.append(parts_item)

        whole: dict[str, Any] | None
        if isinstance(self.whole, PercentilesOut):
            whole = self.whole.to_dict()
        else:
            whole = self.whole

        mean_us: int | None
        mean_us = self.mean_us

        source_lag: dict[str, Any] | None
        if isinstance(self.source_lag, PercentilesOut):
            source_lag = self.source_lag.to_dict()
        else:
            source_lag = self.source_lag

        end_to_end_us: int | None
        end_to_end_us = self.end_to_end_us

        skewed = self.skewed

        range_ = self.range_

        series = []
        for series_item_data in self.series:
            series_item = series_item_data.to_dict()
            series.append(series_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "nodes": nodes,
                "parts": parts,
                "whole": whole,
                "mean_us": mean_us,
                "source_lag": source_lag,
                "end_to_end_us": end_to_end_us,
                "skewed": skewed,
                "range": range_,
                "series": series,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.node_timing_out import NodeTimingOut  # noqa: PLC0415
        from ..models.part_out import PartOut  # noqa: PLC0415
        from ..models.percentiles_out import PercentilesOut  # noqa: PLC0415
        from ..models.shares_out import SharesOut  # noqa: PLC0415

        d = dict(src_dict)
        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = NodeTimingOut.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        parts = []
        _parts = d.pop("parts")
        for parts_item_data in _parts:
            parts_item = PartOut.from_dict(parts_item_data)

            parts.append(parts_item)

        def _parse_whole(data: object) -> None | PercentilesOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                whole_type_0 = PercentilesOut.from_dict(data)

                return whole_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PercentilesOut, data)

        whole = _parse_whole(d.pop("whole"))

        def _parse_mean_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        mean_us = _parse_mean_us(d.pop("mean_us"))

        def _parse_source_lag(data: object) -> None | PercentilesOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                source_lag_type_0 = PercentilesOut.from_dict(data)

                return source_lag_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PercentilesOut, data)

        source_lag = _parse_source_lag(d.pop("source_lag"))

        def _parse_end_to_end_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        end_to_end_us = _parse_end_to_end_us(d.pop("end_to_end_us"))

        skewed = d.pop("skewed")

        range_ = d.pop("range")

        series = []
        _series = d.pop("series")
        for series_item_data in _series:
            series_item = SharesOut.from_dict(series_item_data)

            series.append(series_item)

        timing_out = cls(
            nodes=nodes,
            parts=parts,
            whole=whole,
            mean_us=mean_us,
            source_lag=source_lag,
            end_to_end_us=end_to_end_us,
            skewed=skewed,
            range_=range_,
            series=series,
        )

        timing_out.additional_properties = d
        return timing_out

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
