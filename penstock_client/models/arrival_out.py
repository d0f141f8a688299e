from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="ArrivalOut")


@_attrs_define
class ArrivalOut:
    """Arrival of the event at ingest.

    Attributes:
        source (str): Name of the source in the spec.
        event_time (datetime.datetime | None): By the source's clock.
        ingest_time (datetime.datetime): Time at which ingest accepted the event.
        lag_us (int): `ingest_time - event_time`; negative if the source's clock is ahead.
        stored_us (int): Time from `ingest_time` until Kafka had stored it.
        off_time (bool): True if the event time was too far off and is not used.
        trace (str): Id of the trace that the event carries; empty if it carries none.
    """

    source: str
    event_time: datetime.datetime | None
    ingest_time: datetime.datetime
    lag_us: int
    stored_us: int
    off_time: bool
    trace: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        source = self.source

        event_time: None | str
        if isinstance(self.event_time, datetime.datetime):
            event_time = self.event_time.isoformat()
        else:
            event_time = self.event_time

        ingest_time = self.ingest_time.isoformat()

        lag_us = self.lag_us

        stored_us = self.stored_us

        off_time = self.off_time

        trace = self.trace

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "source": source,
                "event_time": event_time,
                "ingest_time": ingest_time,
                "lag_us": lag_us,
                "stored_us": stored_us,
                "off_time": off_time,
                "trace": trace,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        source = d.pop("source")

        def _parse_event_time(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                event_time_type_0 = datetime.datetime.fromisoformat(data)

                return event_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        event_time = _parse_event_time(d.pop("event_time"))

        ingest_time = datetime.datetime.fromisoformat(d.pop("ingest_time"))

        lag_us = d.pop("lag_us")

        stored_us = d.pop("stored_us")

        off_time = d.pop("off_time")

        trace = d.pop("trace")

        arrival_out = cls(
            source=source,
            event_time=event_time,
            ingest_time=ingest_time,
            lag_us=lag_us,
            stored_us=stored_us,
            off_time=off_time,
            trace=trace,
        )

        arrival_out.additional_properties = d
        return arrival_out

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
