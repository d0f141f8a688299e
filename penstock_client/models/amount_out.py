from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="AmountOut")


@_attrs_define
class AmountOut:
    """Events accepted, requests sent, and CPU used for them.

    Attributes:
        events (int): Events accepted at ingest.
        in_bytes (int): Bytes of the accepted bodies.
        runs (int): Messages that process lanes ran through the steps, including repeats.
        attempts (int): Delivery attempts, including failed ones.
        out_bytes (int): Bytes of the bodies sent in these attempts.
        cpu_us (int): CPU time of ingest, all lanes and replays, in microseconds.
        refused (int): Events refused because of the tenant's quota; a request refused before it was read counts as one.
    """

    events: int
    in_bytes: int
    runs: int
    attempts: int
    out_bytes: int
    cpu_us: int
    refused: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        in_bytes = self.in_bytes

        runs = self.runs

        attempts = self.attempts

        out_bytes = self.out_bytes

        cpu_us = self.cpu_us

        refused = self.refused

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "events": events,
                "in_bytes": in_bytes,
                "runs": runs,
                "attempts": attempts,
                "out_bytes": out_bytes,
                "cpu_us": cpu_us,
                "refused": refused,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        events = d.pop("events")

        in_bytes = d.pop("in_bytes")

        runs = d.pop("runs")

        attempts = d.pop("attempts")

        out_bytes = d.pop("out_bytes")

        cpu_us = d.pop("cpu_us")

        refused = d.pop("refused")

        amount_out = cls(
            events=events,
            in_bytes=in_bytes,
            runs=runs,
            attempts=attempts,
            out_bytes=out_bytes,
            cpu_us=cpu_us,
            refused=refused,
        )

        amount_out.additional_properties = d
        return amount_out

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
