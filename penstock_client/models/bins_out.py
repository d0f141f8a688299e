from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="BinsOut")


@_attrs_define
class BinsOut:
    """Number of messages in each bin; a message counts once for each destination.

    Attributes:
        delivered (int): A destination returned 2xx.
        filtered (int): Not selected for any destination.
        duplicate (int): Repeats of an earlier event.
        dead (int): Failed permanently; they can be redriven.
        cancelled (int): Their destination was removed before the delivery.
        held (int): Kept until they are released.
        retrying (int): Failed, waiting for the next attempt.
        queued (int): In progress.
        lost (int): No outcome was recorded although the next node has passed them.
    """

    delivered: int
    filtered: int
    duplicate: int
    dead: int
    cancelled: int
    held: int
    retrying: int
    queued: int
    lost: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        delivered = self.delivered

        filtered = self.filtered

        duplicate = self.duplicate

        dead = self.dead

        cancelled = self.cancelled

        held = self.held

        retrying = self.retrying

        queued = self.queued

        lost = self.lost

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "delivered": delivered,
                "filtered": filtered,
                "duplicate": duplicate,
                "dead": dead,
                "cancelled": cancelled,
                "held": held,
                "retrying": retrying,
                "queued": queued,
                "lost": lost,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        delivered = d.pop("delivered")

        filtered = d.pop("filtered")

        duplicate = d.pop("duplicate")

        dead = d.pop("dead")

        cancelled = d.pop("cancelled")

        held = d.pop("held")

        retrying = d.pop("retrying")

        queued = d.pop("queued")

        lost = d.pop("lost")

        bins_out = cls(
            delivered=delivered,
            filtered=filtered,
            duplicate=duplicate,
            dead=dead,
            cancelled=cancelled,
            held=held,
            retrying=retrying,
            queued=queued,
            lost=lost,
        )

        bins_out.additional_properties = d
        return bins_out

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
