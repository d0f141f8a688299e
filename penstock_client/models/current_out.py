from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.pane_out import PaneOut


T = TypeVar("T", bound="CurrentOut")


@_attrs_define
class CurrentOut:
    """Current values of a window for one key.

    Attributes:
        window (str): Name of the window.
        by (Any): Key: a value for each path.
        as_of (datetime.datetime | None): All events that arrived before this time are included.
        open_ (list[PaneOut]): Open windows in the order of time; empty if no open window has an event of the key.
    """

    window: str
    by: Any
    as_of: datetime.datetime | None
    open_: list[PaneOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pane_out import PaneOut  # noqa: PLC0415

        window = self.window

        by = self.by

        as_of: None | str
        if isinstance(self.as_of, datetime.datetime):
            as_of = self.as_of.isoformat()
        else:
            as_of = self.as_of

        open_ = []
        for open_item_data in self.open_:
            open_item = open_item_data.to_dict()
            open_.append(open_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "window": window,
                "by": by,
                "as_of": as_of,
                "open": open_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pane_out import PaneOut  # noqa: PLC0415

        d = dict(src_dict)
        window = d.pop("window")

        by = d.pop("by")

        def _parse_as_of(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                as_of_type_0 = datetime.datetime.fromisoformat(data)

                return as_of_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        as_of = _parse_as_of(d.pop("as_of"))

        open_ = []
        _open_ = d.pop("open")
        for open_item_data in _open_:
            open_item = PaneOut.from_dict(open_item_data)

            open_.append(open_item)

        current_out = cls(
            window=window,
            by=by,
            as_of=as_of,
            open_=open_,
        )

        current_out.additional_properties = d
        return current_out

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
