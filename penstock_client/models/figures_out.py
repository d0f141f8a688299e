from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="FiguresOut")


@_attrs_define
class FiguresOut:
    """Results of one revision's messages during a step.

    Attributes:
        taken (int): Messages that lanes started to process.
        failed (int): Messages that are dead, or wait for a retry.
        filtered (int): Messages that the revision's own rules ended; not judged.
        stuck (int): Messages that have not reached the route 90 s after the end of their minute.
        lost (int): Messages of which Penstock has lost track.
        p95_us (int | None): 95th percentile of the time from ingest through the steps, in microseconds.
    """

    taken: int
    failed: int
    filtered: int
    stuck: int
    lost: int
    p95_us: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        taken = self.taken

        failed = self.failed

        filtered = self.filtered

        stuck = self.stuck

        lost = self.lost

        p95_us: int | None
        p95_us = self.p95_us

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "taken": taken,
                "failed": failed,
                "filtered": filtered,
                "stuck": stuck,
                "lost": lost,
                "p95_us": p95_us,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        taken = d.pop("taken")

        failed = d.pop("failed")

        filtered = d.pop("filtered")

        stuck = d.pop("stuck")

        lost = d.pop("lost")

        def _parse_p95_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        p95_us = _parse_p95_us(d.pop("p95_us"))

        figures_out = cls(
            taken=taken,
            failed=failed,
            filtered=filtered,
            stuck=stuck,
            lost=lost,
            p95_us=p95_us,
        )

        figures_out.additional_properties = d
        return figures_out

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
