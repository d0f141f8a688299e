from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.destination_out import DestinationOut


T = TypeVar("T", bound="NewSecretOut")


@_attrs_define
class NewSecretOut:
    """A new signing secret. `secret` is returned only here; the previous secret continues to sign as well.

    Attributes:
        destination (DestinationOut): A destination of a pipe, as it is used now.
        secret (str): Signing secret. It cannot be read again.
    """

    destination: DestinationOut
    secret: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.destination_out import DestinationOut  # noqa: PLC0415

        destination = self.destination.to_dict()

        secret = self.secret

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "destination": destination,
                "secret": secret,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.destination_out import DestinationOut  # noqa: PLC0415

        d = dict(src_dict)
        destination = DestinationOut.from_dict(d.pop("destination"))

        secret = d.pop("secret")

        new_secret_out = cls(
            destination=destination,
            secret=secret,
        )

        new_secret_out.additional_properties = d
        return new_secret_out

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
