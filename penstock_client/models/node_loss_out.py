from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="NodeLossOut")


@_attrs_define
class NodeLossOut:
    """Loss at one node.

    Attributes:
        node (str): Node of the pipe's graph.
        due (int): Messages that were to arrive: those that did, and the lost ones.
        lost (int): Messages lost before or in the node.
        share (float): `lost` / `due`, 0 to 1.
    """

    node: str
    due: int
    lost: int
    share: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        due = self.due

        lost = self.lost

        share = self.share

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "node": node,
                "due": due,
                "lost": lost,
                "share": share,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        due = d.pop("due")

        lost = d.pop("lost")

        share = d.pop("share")

        node_loss_out = cls(
            node=node,
            due=due,
            lost=lost,
            share=share,
        )

        node_loss_out.additional_properties = d
        return node_loss_out

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
