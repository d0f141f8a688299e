from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.amount_out import AmountOut


T = TypeVar("T", bound="PipeShareOut")


@_attrs_define
class PipeShareOut:
    """Usage of one pipe of a tenant.

    Attributes:
        pipe (str): Id of the pipe.
        name (str): Name.
        amount (AmountOut): Events accepted, requests sent, and CPU used for them.
        share (float | None): Share (0 to 1) of the tenant's CPU time.
    """

    pipe: str
    name: str
    amount: AmountOut
    share: float | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.amount_out import AmountOut  # noqa: PLC0415

        pipe = self.pipe

        name = self.name

        amount = self.amount.to_dict()

        share: float | None
        share = self.share

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "name": name,
                "amount": amount,
                "share": share,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount_out import AmountOut  # noqa: PLC0415

        d = dict(src_dict)
        pipe = d.pop("pipe")

        name = d.pop("name")

        amount = AmountOut.from_dict(d.pop("amount"))

        def _parse_share(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        share = _parse_share(d.pop("share"))

        pipe_share_out = cls(
            pipe=pipe,
            name=name,
            amount=amount,
            share=share,
        )

        pipe_share_out.additional_properties = d
        return pipe_share_out

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
