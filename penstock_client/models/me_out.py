from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.my_token_out import MyTokenOut
    from ..models.tenancy_out import TenancyOut


T = TypeVar("T", bound="MeOut")


@_attrs_define
class MeOut:
    """The signed-in user.

    Attributes:
        username (str): User name.
        tenants (list[TenancyOut]): Your tenants, by name.
        token (MyTokenOut | None): Null without an API token.
    """

    username: str
    tenants: list[TenancyOut]
    token: MyTokenOut | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.my_token_out import MyTokenOut  # noqa: PLC0415
        from ..models.tenancy_out import TenancyOut  # noqa: PLC0415

        username = self.username

        tenants = []
        for tenants_item_data in self.tenants:
            tenants_item = tenants_item_data.to_dict()
            tenants.append(tenants_item)

        token: dict[str, Any] | None
        if isinstance(self.token, MyTokenOut):
            token = self.token.to_dict()
        else:
            token = self.token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "username": username,
                "tenants": tenants,
                "token": token,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.my_token_out import MyTokenOut  # noqa: PLC0415
        from ..models.tenancy_out import TenancyOut  # noqa: PLC0415

        d = dict(src_dict)
        username = d.pop("username")

        tenants = []
        _tenants = d.pop("tenants")
        for tenants_item_data in _tenants:
            tenants_item = TenancyOut.from_dict(tenants_item_data)

            tenants.append(tenants_item)

        def _parse_token(data: object) -> MyTokenOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                token_type_0 = MyTokenOut.from_dict(data)

                return token_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(MyTokenOut | None, data)

        token = _parse_token(d.pop("token"))

        me_out = cls(
            username=username,
            tenants=tenants,
            token=token,
        )

        me_out.additional_properties = d
        return me_out

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
