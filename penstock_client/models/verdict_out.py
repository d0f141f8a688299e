from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="VerdictOut")


@_attrs_define
class VerdictOut:
    """The Observer's verdict on a cell.

    Attributes:
        state (str): * `stable` - Stable
            * `unstable` - Unstable
            * `unknown` - Unknown
        reasons (list[str]): Reasons of the verdict, for people.
        silenced (list[str]): Reasons that a change in progress explains.
        since (datetime.datetime): Time since which the verdict applies.
        at (datetime.datetime): Time of the newest check.
    """

    state: str
    reasons: list[str]
    silenced: list[str]
    since: datetime.datetime
    at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        state = self.state

        reasons = self.reasons

        silenced = self.silenced

        since = self.since.isoformat()

        at = self.at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "state": state,
                "reasons": reasons,
                "silenced": silenced,
                "since": since,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        state = d.pop("state")

        reasons = cast(list[str], d.pop("reasons"))

        silenced = cast(list[str], d.pop("silenced"))

        since = datetime.datetime.fromisoformat(d.pop("since"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        verdict_out = cls(
            state=state,
            reasons=reasons,
            silenced=silenced,
            since=since,
            at=at,
        )

        verdict_out.additional_properties = d
        return verdict_out

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
