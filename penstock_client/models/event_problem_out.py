from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="EventProblemOut")


@_attrs_define
class EventProblemOut:
    """A refusal (RFC 9457). `code` is stable.

    Attributes:
        type_ (str): URL of the help page of the code.
        title (str): Title, the same for all refusals with this code.
        status (int): HTTP status of the response.
        detail (str): What was needed and what came, for people.
        code (str): Stable code.
        request_id (str): Id of the request in the logs.
        pointer (str | Unset): JSON pointer to the refused part of the event.
        violated_policies (list[str] | Unset): Names of the quotas that are used up.
    """

    type_: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    pointer: str | Unset = UNSET
    violated_policies: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        title = self.title

        status = self.status

        detail = self.detail

        code = self.code

        request_id = self.request_id

        pointer = self.pointer

        violated_policies: list[str] | Unset = UNSET
        if not isinstance(self.violated_policies, Unset):
            violated_policies = self.violated_policies

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
                "title": title,
                "status": status,
                "detail": detail,
                "code": code,
                "request_id": request_id,
            }
        )
        if pointer is not UNSET:
            field_dict["pointer"] = pointer
        if violated_policies is not UNSET:
            field_dict["violated-policies"] = violated_policies

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        type_ = d.pop("type")

        title = d.pop("title")

        status = d.pop("status")

        detail = d.pop("detail")

        code = d.pop("code")

        request_id = d.pop("request_id")

        pointer = d.pop("pointer", UNSET)

        violated_policies = cast(list[str], d.pop("violated-policies", UNSET))

        event_problem_out = cls(
            type_=type_,
            title=title,
            status=status,
            detail=detail,
            code=code,
            request_id=request_id,
            pointer=pointer,
            violated_policies=violated_policies,
        )

        event_problem_out.additional_properties = d
        return event_problem_out

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
