from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="CloudEventIn")


@_attrs_define
class CloudEventIn:
    """A CloudEvent (specification 1.0) in structured mode, with any extension attributes.

    Attributes:
        specversion (str): Version of the specification.
        id (str): Id of the event, unique for its source.
        source (str): Origin of the event as a URI reference.
        type_ (str): Type of the event.
        time (datetime.datetime | Unset): Time of the event.
        datacontenttype (str | Unset): Media type of `data`.
        data (Any | Unset): Content of the event.
    """

    specversion: str
    id: str
    source: str
    type_: str
    time: datetime.datetime | Unset = UNSET
    datacontenttype: str | Unset = UNSET
    data: Any | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        specversion = self.specversion

        id = self.id

        source = self.source

        type_ = self.type_

        time: str | Unset = UNSET
        if not isinstance(self.time, Unset):
            time = self.time.isoformat()

        datacontenttype = self.datacontenttype

        data = self.data

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "specversion": specversion,
                "id": id,
                "source": source,
                "type": type_,
            }
        )
        if time is not UNSET:
            field_dict["time"] = time
        if datacontenttype is not UNSET:
            field_dict["datacontenttype"] = datacontenttype
        if data is not UNSET:
            field_dict["data"] = data

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        specversion = d.pop("specversion")

        id = d.pop("id")

        source = d.pop("source")

        type_ = d.pop("type")

        _time = d.pop("time", UNSET)
        time: datetime.datetime | Unset
        if isinstance(_time, Unset):
            time = UNSET
        else:
            time = datetime.datetime.fromisoformat(_time)

        datacontenttype = d.pop("datacontenttype", UNSET)

        data = d.pop("data", UNSET)

        cloud_event_in = cls(
            specversion=specversion,
            id=id,
            source=source,
            type_=type_,
            time=time,
            datacontenttype=datacontenttype,
            data=data,
        )

        cloud_event_in.additional_properties = d
        return cloud_event_in

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
