from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.amount_out import AmountOut


T = TypeVar("T", bound="TenantUsageOut")


@_attrs_define
class TenantUsageOut:
    """Usage of one tenant.

    Attributes:
        tenant (str): Name of the tenant; empty for usage that belongs to no pipe.
        amount (AmountOut): Events accepted, requests sent, and CPU used for them.
    """

    tenant: str
    amount: AmountOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.amount_out import AmountOut  # noqa: PLC0415

        tenant = self.tenant

        amount = self.amount.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "amount": amount,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount_out import AmountOut  # noqa: PLC0415

        d = dict(src_dict)
        tenant = d.pop("tenant")

        amount = AmountOut.from_dict(d.pop("amount"))

        tenant_usage_out = cls(
            tenant=tenant,
            amount=amount,
        )

        tenant_usage_out.additional_properties = d
        return tenant_usage_out

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
