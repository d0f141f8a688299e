from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="RuleOut")


@_attrs_define
class RuleOut:
    """Routing rule with its result.

    Attributes:
        number (int): Number of the rule, from 1.
        when (str): Condition: an expression.
        to (list[str]): Names of destinations.
        matched (bool | None): Null if it was not evaluated.
    """

    number: int
    when: str
    to: list[str]
    matched: bool | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        number = self.number

        when = self.when

        to = self.to

        matched: bool | None
        matched = self.matched

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "when": when,
                "to": to,
                "matched": matched,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        number = d.pop("number")

        when = d.pop("when")

        to = cast(list[str], d.pop("to"))

        def _parse_matched(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        matched = _parse_matched(d.pop("matched"))

        rule_out = cls(
            number=number,
            when=when,
            to=to,
            matched=matched,
        )

        rule_out.additional_properties = d
        return rule_out

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
