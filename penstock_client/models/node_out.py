from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.result_out import ResultOut


T = TypeVar("T", bound="NodeOut")


@_attrs_define
class NodeOut:
    """Results of one node.

    Attributes:
        node (str): Node of the pipe's graph.
        took_us (int): Microseconds.
        results (list[ResultOut]): Rows of this page.
    """

    node: str
    took_us: int
    results: list[ResultOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.result_out import ResultOut  # noqa: PLC0415

        node = self.node

        took_us = self.took_us

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "node": node,
                "took_us": took_us,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.result_out import ResultOut  # noqa: PLC0415

        d = dict(src_dict)
        node = d.pop("node")

        took_us = d.pop("took_us")

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = ResultOut.from_dict(results_item_data)

            results.append(results_item)

        node_out = cls(
            node=node,
            took_us=took_us,
            results=results,
        )

        node_out.additional_properties = d
        return node_out

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
