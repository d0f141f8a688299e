from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.new_source_schema_out_schema import NewSourceSchemaOutSchema


T = TypeVar("T", bound="NewSourceSchemaOut")


@_attrs_define
class NewSourceSchemaOut:
    """A registered schema version, with a check of the source's newest event.

    Attributes:
        number (int): Number, counted from 1.
        schema (NewSourceSchemaOutSchema): Schema.
        created_at (datetime.datetime): Time of creation.
        newest_event (None | str): Result of a check of the source's newest event; null if that event cannot be read or
            checked now.
        author (None | str | Unset): User who created it; null if the user was deleted or Penstock created it.
    """

    number: int
    schema: NewSourceSchemaOutSchema
    created_at: datetime.datetime
    newest_event: None | str
    author: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.new_source_schema_out_schema import NewSourceSchemaOutSchema  # noqa: PLC0415

        number = self.number

        schema = self.schema.to_dict()

        created_at = self.created_at.isoformat()

        newest_event: None | str
        newest_event = self.newest_event

        author: None | str | Unset
        if isinstance(self.author, Unset):
            author = UNSET
        else:
            author = self.author

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "schema": schema,
                "created_at": created_at,
                "newest_event": newest_event,
            }
        )
        if author is not UNSET:
            field_dict["author"] = author

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.new_source_schema_out_schema import NewSourceSchemaOutSchema  # noqa: PLC0415

        d = dict(src_dict)
        number = d.pop("number")

        schema = NewSourceSchemaOutSchema.from_dict(d.pop("schema"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_newest_event(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        newest_event = _parse_newest_event(d.pop("newest_event"))

        def _parse_author(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        author = _parse_author(d.pop("author", UNSET))

        new_source_schema_out = cls(
            number=number,
            schema=schema,
            created_at=created_at,
            newest_event=newest_event,
            author=author,
        )

        new_source_schema_out.additional_properties = d
        return new_source_schema_out

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
