from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.loss_out import LossOut
    from ..models.lost_message_out import LostMessageOut


T = TypeVar("T", bound="LossesOut")


@_attrs_define
class LossesOut:
    """Loss by node, and the lost messages.

    Attributes:
        loss (LossOut): Loss by node and end to end. After the route, a message counts once for each of its
            destinations.
        results (list[LostMessageOut]): Rows of this page.
        next_offset (int | None): `offset` of the next messages; null after the last message.
    """

    loss: LossOut
    results: list[LostMessageOut]
    next_offset: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.loss_out import LossOut  # noqa: PLC0415
        from ..models.lost_message_out import LostMessageOut  # noqa: PLC0415

        loss = self.loss.to_dict()

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        next_offset: int | None
        next_offset = self.next_offset

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "loss": loss,
                "results": results,
                "next_offset": next_offset,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.loss_out import LossOut  # noqa: PLC0415
        from ..models.lost_message_out import LostMessageOut  # noqa: PLC0415

        d = dict(src_dict)
        loss = LossOut.from_dict(d.pop("loss"))

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = LostMessageOut.from_dict(results_item_data)

            results.append(results_item)

        def _parse_next_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        next_offset = _parse_next_offset(d.pop("next_offset"))

        losses_out = cls(
            loss=loss,
            results=results,
            next_offset=next_offset,
        )

        losses_out.additional_properties = d
        return losses_out

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
