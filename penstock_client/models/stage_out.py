from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="StageOut")


@_attrs_define
class StageOut:
    """Stage, recomputed from the stored event by the revision that processed it.

    Attributes:
        node (str): Node of the pipe's graph.
        outcome (str): `passed`, `filtered` or `dead`.
        cause (str): Cause, one of a fixed list of codes.
        detail (str): Details, for people.
        before (str): Body on arrival.
        after (str): Body on departure.
        to (list[str]): Destinations that the route chose.
        took_us (int): Duration of this computation, not of the original one.
    """

    node: str
    outcome: str
    cause: str
    detail: str
    before: str
    after: str
    to: list[str]
    took_us: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        outcome = self.outcome

        cause = self.cause

        detail = self.detail

        before = self.before

        after = self.after

        to = self.to

        took_us = self.took_us

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "node": node,
                "outcome": outcome,
                "cause": cause,
                "detail": detail,
                "before": before,
                "after": after,
                "to": to,
                "took_us": took_us,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        outcome = d.pop("outcome")

        cause = d.pop("cause")

        detail = d.pop("detail")

        before = d.pop("before")

        after = d.pop("after")

        to = cast(list[str], d.pop("to"))

        took_us = d.pop("took_us")

        stage_out = cls(
            node=node,
            outcome=outcome,
            cause=cause,
            detail=detail,
            before=before,
            after=after,
            to=to,
            took_us=took_us,
        )

        stage_out.additional_properties = d
        return stage_out

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
