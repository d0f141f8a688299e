from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.loss_out import LossOut


T = TypeVar("T", bound="LossLineOut")


@_attrs_define
class LossLineOut:
    """Loss of one sealed minute of one pipe, as it is now.

    Attributes:
        tenant (str): Id of the tenant.
        tenant_name (str): Name of the tenant.
        pipe (str): Id of the pipe.
        pipe_name (str): Name of the pipe.
        cell (None | str): Id of the cell; null if it concerns no cell.
        minute (int): Minutes since 1970-01-01T00:00Z.
        starts (datetime.datetime): Start of the minute.
        loss (LossOut): Loss by node and end to end. After the route, a message counts once for each of its
            destinations.
    """

    tenant: str
    tenant_name: str
    pipe: str
    pipe_name: str
    cell: None | str
    minute: int
    starts: datetime.datetime
    loss: LossOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.loss_out import LossOut  # noqa: PLC0415

        tenant = self.tenant

        tenant_name = self.tenant_name

        pipe = self.pipe

        pipe_name = self.pipe_name

        cell: None | str
        cell = self.cell

        minute = self.minute

        starts = self.starts.isoformat()

        loss = self.loss.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "tenant_name": tenant_name,
                "pipe": pipe,
                "pipe_name": pipe_name,
                "cell": cell,
                "minute": minute,
                "starts": starts,
                "loss": loss,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.loss_out import LossOut  # noqa: PLC0415

        d = dict(src_dict)
        tenant = d.pop("tenant")

        tenant_name = d.pop("tenant_name")

        pipe = d.pop("pipe")

        pipe_name = d.pop("pipe_name")

        def _parse_cell(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        cell = _parse_cell(d.pop("cell"))

        minute = d.pop("minute")

        starts = datetime.datetime.fromisoformat(d.pop("starts"))

        loss = LossOut.from_dict(d.pop("loss"))

        loss_line_out = cls(
            tenant=tenant,
            tenant_name=tenant_name,
            pipe=pipe,
            pipe_name=pipe_name,
            cell=cell,
            minute=minute,
            starts=starts,
            loss=loss,
        )

        loss_line_out.additional_properties = d
        return loss_line_out

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
