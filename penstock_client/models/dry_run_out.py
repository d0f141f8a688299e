from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.node_out import NodeOut
    from ..models.outbound_request_out import OutboundRequestOut


T = TypeVar("T", bound="DryRunOut")


@_attrs_define
class DryRunOut:
    """Result of a dry run: each node's output, and the requests.

    Attributes:
        event (str): Body of the event.
        nodes (list[NodeOut]): Nodes of the pipe's graph.
        requests (list[OutboundRequestOut]): Requests that would be sent.
        exploded (int): Number of messages that an explode step made; at most 20 of them are processed further.
    """

    event: str
    nodes: list[NodeOut]
    requests: list[OutboundRequestOut]
    exploded: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.node_out import NodeOut  # noqa: PLC0415
        from ..models.outbound_request_out import OutboundRequestOut  # noqa: PLC0415

        event = self.event

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        requests = []
        for requests_item_data in self.requests:
            requests_item = requests_item_data.to_dict()
            requests.append(requests_item)

        exploded = self.exploded

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "event": event,
                "nodes": nodes,
                "requests": requests,
                "exploded": exploded,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.node_out import NodeOut  # noqa: PLC0415
        from ..models.outbound_request_out import OutboundRequestOut  # noqa: PLC0415

        d = dict(src_dict)
        event = d.pop("event")

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = NodeOut.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        requests = []
        _requests = d.pop("requests")
        for requests_item_data in _requests:
            requests_item = OutboundRequestOut.from_dict(requests_item_data)

            requests.append(requests_item)

        exploded = d.pop("exploded")

        dry_run_out = cls(
            event=event,
            nodes=nodes,
            requests=requests,
            exploded=exploded,
        )

        dry_run_out.additional_properties = d
        return dry_run_out

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
