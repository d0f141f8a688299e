from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.preview_out_causes import PreviewOutCauses


T = TypeVar("T", bound="PreviewOut")


@_attrs_define
class PreviewOut:
    """Messages that match a selection now. A move takes the oldest `most` of `count`.

    Attributes:
        count (int): Number of messages.
        causes (PreviewOutCauses): Number of messages by cause.
        oldest (datetime.datetime | None): Time of the oldest selected message; null if there is none.
        newest (datetime.datetime | None): Time of the newest selected message; null if there is none.
        unready (int): Dead letters that failed in a step and cannot be sent or run again. A move does not include them.
        most (int): Greatest number of messages in one request.
    """

    count: int
    causes: PreviewOutCauses
    oldest: datetime.datetime | None
    newest: datetime.datetime | None
    unready: int
    most: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.preview_out_causes import PreviewOutCauses  # noqa: PLC0415

        count = self.count

        causes = self.causes.to_dict()

        oldest: None | str
        if isinstance(self.oldest, datetime.datetime):
            oldest = self.oldest.isoformat()
        else:
            oldest = self.oldest

        newest: None | str
        if isinstance(self.newest, datetime.datetime):
            newest = self.newest.isoformat()
        else:
            newest = self.newest

        unready = self.unready

        most = self.most

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "causes": causes,
                "oldest": oldest,
                "newest": newest,
                "unready": unready,
                "most": most,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.preview_out_causes import PreviewOutCauses  # noqa: PLC0415

        d = dict(src_dict)
        count = d.pop("count")

        causes = PreviewOutCauses.from_dict(d.pop("causes"))

        def _parse_oldest(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                oldest_type_0 = datetime.datetime.fromisoformat(data)

                return oldest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        oldest = _parse_oldest(d.pop("oldest"))

        def _parse_newest(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                newest_type_0 = datetime.datetime.fromisoformat(data)

                return newest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        newest = _parse_newest(d.pop("newest"))

        unready = d.pop("unready")

        most = d.pop("most")

        preview_out = cls(
            count=count,
            causes=causes,
            oldest=oldest,
            newest=newest,
            unready=unready,
            most=most,
        )

        preview_out.additional_properties = d
        return preview_out

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
