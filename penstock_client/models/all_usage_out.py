from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.amount_out import AmountOut
    from ..models.group_usage_out import GroupUsageOut
    from ..models.tenant_usage_out import TenantUsageOut


T = TypeVar("T", bound="AllUsageOut")


@_attrs_define
class AllUsageOut:
    """Usage of all tenants.

    Attributes:
        total (AmountOut): Events accepted, requests sent, and CPU used for them.
        tenants (list[TenantUsageOut]): Usage of each tenant, the greatest first.
        groups (list[GroupUsageOut]): Usage of each process group of the platform.
    """

    total: AmountOut
    tenants: list[TenantUsageOut]
    groups: list[GroupUsageOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.amount_out import AmountOut  # noqa: PLC0415
        from ..models.group_usage_out import GroupUsageOut  # noqa: PLC0415
        from ..models.tenant_usage_out import TenantUsageOut  # noqa: PLC0415

        total = self.total.to_dict()

        tenants = []
        for tenants_item_data in self.tenants:
            tenants_item = tenants_item_data.to_dict()
            tenants.append(tenants_item)

        groups = []
        for groups_item_data in self.groups:
            groups_item = groups_item_data.to_dict()
            groups.append(groups_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "total": total,
                "tenants": tenants,
                "groups": groups,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount_out import AmountOut  # noqa: PLC0415
        from ..models.group_usage_out import GroupUsageOut  # noqa: PLC0415
        from ..models.tenant_usage_out import TenantUsageOut  # noqa: PLC0415

        d = dict(src_dict)
        total = AmountOut.from_dict(d.pop("total"))

        tenants = []
        _tenants = d.pop("tenants")
        for tenants_item_data in _tenants:
            tenants_item = TenantUsageOut.from_dict(tenants_item_data)

            tenants.append(tenants_item)

        groups = []
        _groups = d.pop("groups")
        for groups_item_data in _groups:
            groups_item = GroupUsageOut.from_dict(groups_item_data)

            groups.append(groups_item)

        all_usage_out = cls(
            total=total,
            tenants=tenants,
            groups=groups,
        )

        all_usage_out.additional_properties = d
        return all_usage_out

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
