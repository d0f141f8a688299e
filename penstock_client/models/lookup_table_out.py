from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.table_feed_out import TableFeedOut


T = TypeVar("T", bound="LookupTableOut")


@_attrs_define
class LookupTableOut:
    """A look-up table.

    Attributes:
        id (str): Id of the table.
        name (str): Name by which `enrich` steps refer to the table.
        tenant (str): Id of the tenant.
        row_count (int): Rows stored by upload, API or console. The status of the table also counts those that pipes
            wrote.
        fed_by (list[TableFeedOut]): Destinations that write the table. Empty: none does.
        state (str): * `live` - live
            * `publishing` - publishing
        created_at (datetime.datetime): Time of creation.
        changed_at (datetime.datetime): Time of the last change.
    """

    id: str
    name: str
    tenant: str
    row_count: int
    fed_by: list[TableFeedOut]
    state: str
    created_at: datetime.datetime
    changed_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.table_feed_out import TableFeedOut  # noqa: PLC0415

        id = self.id

        name = self.name

        tenant = self.tenant

        row_count = self.row_count

        fed_by = []
        for fed_by_item_data in self.fed_by:
            fed_by_item = fed_by_item_data.to_dict()
            fed_by.append(fed_by_item)

        state = self.state

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "tenant": tenant,
                "row_count": row_count,
                "fed_by": fed_by,
                "state": state,
                "created_at": created_at,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.table_feed_out import TableFeedOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        tenant = d.pop("tenant")

        row_count = d.pop("row_count")

        fed_by = []
        _fed_by = d.pop("fed_by")
        for fed_by_item_data in _fed_by:
            fed_by_item = TableFeedOut.from_dict(fed_by_item_data)

            fed_by.append(fed_by_item)

        state = d.pop("state")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        lookup_table_out = cls(
            id=id,
            name=name,
            tenant=tenant,
            row_count=row_count,
            fed_by=fed_by,
            state=state,
            created_at=created_at,
            changed_at=changed_at,
        )

        lookup_table_out.additional_properties = d
        return lookup_table_out

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
