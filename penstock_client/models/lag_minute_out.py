from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.node_timing_out import NodeTimingOut


T = TypeVar("T", bound="LagMinuteOut")


@_attrs_define
class LagMinuteOut:
    """Lags and process durations of one minute.

    Attributes:
        minute (int): Minutes since 1970-01-01T00:00Z: the minute of the message's event.
        starts (datetime.datetime): Start of the minute.
        nodes (list[NodeTimingOut]): Nodes of the pipe's graph.
    """

    minute: int
    starts: datetime.datetime
    nodes: list[NodeTimingOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.node_timing_out import NodeTimingOut  # noqa: PLC0415

        minute = self.minute

        starts = self.starts.isoformat()

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "minute": minute,
                "starts": starts,
                "nodes": nodes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.node_timing_out import NodeTimingOut  # noqa: PLC0415

        d = dict(src_dict)
        minute = d.pop("minute")

        starts = datetime.datetime.fromisoformat(d.pop("starts"))

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = NodeTimingOut.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        lag_minute_out = cls(
            minute=minute,
            starts=starts,
            nodes=nodes,
        )

        lag_minute_out.additional_properties = d
        return lag_minute_out

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
