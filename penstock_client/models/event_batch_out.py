from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.event_ack_out import EventAckOut


T = TypeVar("T", bound="EventBatchOut")


@_attrs_define
class EventBatchOut:
    """Results of a batch.

    Attributes:
        accepted (int): Number of stored events.
        rejected (int): Number of refused events.
        items (list[EventAckOut]): Result of each event, in the order of the request.
        receipts (str): URL template of a receipt, by the id of its event.
    """

    accepted: int
    rejected: int
    items: list[EventAckOut]
    receipts: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.event_ack_out import EventAckOut  # noqa: PLC0415

        accepted = self.accepted

        rejected = self.rejected

        items = []
        for items_item_data in self.items:
            items_item = items_item_data.to_dict()
            items.append(items_item)

        receipts = self.receipts

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accepted": accepted,
                "rejected": rejected,
                "items": items,
                "receipts": receipts,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.event_ack_out import EventAckOut  # noqa: PLC0415

        d = dict(src_dict)
        accepted = d.pop("accepted")

        rejected = d.pop("rejected")

        items = []
        _items = d.pop("items")
        for items_item_data in _items:
            items_item = EventAckOut.from_dict(items_item_data)

            items.append(items_item)

        receipts = d.pop("receipts")

        event_batch_out = cls(
            accepted=accepted,
            rejected=rejected,
            items=items,
            receipts=receipts,
        )

        event_batch_out.additional_properties = d
        return event_batch_out

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
