from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.node_loss_out import NodeLossOut


T = TypeVar("T", bound="LossOut")


@_attrs_define
class LossOut:
    """Loss by node and end to end. After the route, a message counts once for each of its destinations.

    Attributes:
        due (int): All messages.
        lost (int): Messages in the bin `lost`.
        share (float): End-to-end loss: `lost` / `due`, 0 to 1.
        nodes (list[NodeLossOut]): In order of travel.
    """

    due: int
    lost: int
    share: float
    nodes: list[NodeLossOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.node_loss_out import NodeLossOut  # noqa: PLC0415

        due = self.due

        lost = self.lost

        share = self.share

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "due": due,
                "lost": lost,
                "share": share,
                "nodes": nodes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.node_loss_out import NodeLossOut  # noqa: PLC0415

        d = dict(src_dict)
        due = d.pop("due")

        lost = d.pop("lost")

        share = d.pop("share")

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = NodeLossOut.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        loss_out = cls(
            due=due,
            lost=lost,
            share=share,
            nodes=nodes,
        )

        loss_out.additional_properties = d
        return loss_out

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
