from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="FieldErrorOut")


@_attrs_define
class FieldErrorOut:
    """One error of a request: a field by JSON pointer, or a query parameter by name.

    Attributes:
        detail (str): The value that the field or parameter needs.
        code (str): Stable code of the error.
        pointer (str | Unset): JSON pointer into the body, as a URI fragment.
        parameter (str | Unset): Name of the query parameter.
    """

    detail: str
    code: str
    pointer: str | Unset = UNSET
    parameter: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        detail = self.detail

        code = self.code

        pointer = self.pointer

        parameter = self.parameter

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "detail": detail,
                "code": code,
            }
        )
        if pointer is not UNSET:
            field_dict["pointer"] = pointer
        if parameter is not UNSET:
            field_dict["parameter"] = parameter

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        detail = d.pop("detail")

        code = d.pop("code")

        pointer = d.pop("pointer", UNSET)

        parameter = d.pop("parameter", UNSET)

        field_error_out = cls(
            detail=detail,
            code=code,
            pointer=pointer,
            parameter=parameter,
        )

        field_error_out.additional_properties = d
        return field_error_out

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
