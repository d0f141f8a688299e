from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.figures_out import FiguresOut


T = TypeVar("T", bound="StepOut")


@_attrs_define
class StepOut:
    """One step of a ramp, with its final or current figures.

    Attributes:
        share (int): Percent of the keys.
        began_at (datetime.datetime): Start time.
        ended_at (datetime.datetime | None): End time; null while it lasts.
        ramping (FiguresOut): Results of one revision's messages during a step.
        stable (FiguresOut): Results of one revision's messages during a step.
    """

    share: int
    began_at: datetime.datetime
    ended_at: datetime.datetime | None
    ramping: FiguresOut
    stable: FiguresOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.figures_out import FiguresOut  # noqa: PLC0415

        share = self.share

        began_at = self.began_at.isoformat()

        ended_at: None | str
        if isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        ramping = self.ramping.to_dict()

        stable = self.stable.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "share": share,
                "began_at": began_at,
                "ended_at": ended_at,
                "ramping": ramping,
                "stable": stable,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.figures_out import FiguresOut  # noqa: PLC0415

        d = dict(src_dict)
        share = d.pop("share")

        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        def _parse_ended_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ended_at = _parse_ended_at(d.pop("ended_at"))

        ramping = FiguresOut.from_dict(d.pop("ramping"))

        stable = FiguresOut.from_dict(d.pop("stable"))

        step_out = cls(
            share=share,
            began_at=began_at,
            ended_at=ended_at,
            ramping=ramping,
            stable=stable,
        )

        step_out.additional_properties = d
        return step_out

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
