from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="ResultOut")


@_attrs_define
class ResultOut:
    """Result of a node for one message.

    Attributes:
        id (str): Id.
        outcome (str): * `passed` - passed
            * `filtered` - filtered
            * `dead` - dead
        body (str): The body on departure, as text.
        to (list[str]): Destinations that the route chose.
        peeked (list[str]): Output of each peek step as `name: body`; a dry run shows it for every message.
        cause (str): Reason why it ended here: filter, empty, unrouted, step, decode, encode or route.
        detail (str): The step or rule, its path, and the value that it needs.
    """

    id: str
    outcome: str
    body: str
    to: list[str]
    peeked: list[str]
    cause: str
    detail: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        outcome = self.outcome

        body = self.body

        to = self.to

        peeked = self.peeked

        cause = self.cause

        detail = self.detail

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "outcome": outcome,
                "body": body,
                "to": to,
                "peeked": peeked,
                "cause": cause,
                "detail": detail,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        outcome = d.pop("outcome")

        body = d.pop("body")

        to = cast(list[str], d.pop("to"))

        peeked = cast(list[str], d.pop("peeked"))

        cause = d.pop("cause")

        detail = d.pop("detail")

        result_out = cls(
            id=id,
            outcome=outcome,
            body=body,
            to=to,
            peeked=peeked,
            cause=cause,
            detail=detail,
        )

        result_out.additional_properties = d
        return result_out

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
