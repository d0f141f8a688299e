from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.finding_out import FindingOut
    from ..models.signal_out import SignalOut


T = TypeVar("T", bound="PatternsOut")


@_attrs_define
class PatternsOut:
    """A pipe's signals with their usual ranges, and its findings, newest first.

    Attributes:
        since (datetime.datetime | None): Start of the newest five minutes that were judged.
        signals (list[SignalOut]): Figures that are compared with their usual range.
        findings (list[FindingOut]): Findings: fields and figures outside their usual range.
    """

    since: datetime.datetime | None
    signals: list[SignalOut]
    findings: list[FindingOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.finding_out import FindingOut  # noqa: PLC0415
        from ..models.signal_out import SignalOut  # noqa: PLC0415

        since: None | str
        if isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        signals = []
        for signals_item_data in self.signals:
            signals_item = signals_item_data.to_dict()
            signals.append(signals_item)

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "since": since,
                "signals": signals,
                "findings": findings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finding_out import FindingOut  # noqa: PLC0415
        from ..models.signal_out import SignalOut  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        since = _parse_since(d.pop("since"))

        signals = []
        _signals = d.pop("signals")
        for signals_item_data in _signals:
            signals_item = SignalOut.from_dict(signals_item_data)

            signals.append(signals_item)

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = FindingOut.from_dict(findings_item_data)

            findings.append(findings_item)

        patterns_out = cls(
            since=since,
            signals=signals,
            findings=findings,
        )

        patterns_out.additional_properties = d
        return patterns_out

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
