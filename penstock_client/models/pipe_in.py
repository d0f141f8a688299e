from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.pipe_spec import PipeSpec


T = TypeVar("T", bound="PipeIn")


@_attrs_define
class PipeIn:
    """Pipe to create.

    Attributes:
        name (str): Name, unique in the tenant.
        spec (PipeSpec):
        tenant (str | Unset): Required only for members of several tenants.
        expected_per_s (int | Unset): Expected events per second. With a high number, only a share of the keys is
            admitted at first. Default: 0.
    """

    name: str
    spec: PipeSpec
    tenant: str | Unset = UNSET
    expected_per_s: int | Unset = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        name = self.name

        spec = self.spec.to_dict()

        tenant = self.tenant

        expected_per_s = self.expected_per_s

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "spec": spec,
            }
        )
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if expected_per_s is not UNSET:
            field_dict["expected_per_s"] = expected_per_s

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        spec = PipeSpec.from_dict(d.pop("spec"))

        tenant = d.pop("tenant", UNSET)

        expected_per_s = d.pop("expected_per_s", UNSET)

        pipe_in = cls(
            name=name,
            spec=spec,
            tenant=tenant,
            expected_per_s=expected_per_s,
        )

        pipe_in.additional_properties = d
        return pipe_in

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
