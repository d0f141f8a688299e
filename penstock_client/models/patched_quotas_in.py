from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.limits_in import LimitsIn


T = TypeVar("T", bound="PatchedQuotasIn")


@_attrs_define
class PatchedQuotasIn:
    """Limits to set for a tenant.

    Attributes:
        limits (LimitsIn | Unset): Limits by kind. Null resets a limit to its default; an omitted limit is unchanged.
        reason (str | Unset): Kept in the audit.
    """

    limits: LimitsIn | Unset = UNSET
    reason: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.limits_in import LimitsIn  # noqa: PLC0415

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if limits is not UNSET:
            field_dict["limits"] = limits
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limits_in import LimitsIn  # noqa: PLC0415

        d = dict(src_dict)
        _limits = d.pop("limits", UNSET)
        limits: LimitsIn | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = LimitsIn.from_dict(_limits)

        reason = d.pop("reason", UNSET)

        patched_quotas_in = cls(
            limits=limits,
            reason=reason,
        )

        patched_quotas_in.additional_properties = d
        return patched_quotas_in

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
