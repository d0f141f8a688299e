from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="TrafficLineOut")


@_attrs_define
class TrafficLineOut:
    """Events of one source that were checked with one version.

    Attributes:
        version (int): Number of the version.
        pipe (str): Id of the pipe.
        source (str): Name of the source in the spec.
        accepted (int): Events that ingest accepted.
        rejected (int): Events that did not fit; of a Kafka source, those that became dead letters.
        rejected_share (float | None): From 0 to 1.
    """

    version: int
    pipe: str
    source: str
    accepted: int
    rejected: int
    rejected_share: float | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        pipe = self.pipe

        source = self.source

        accepted = self.accepted

        rejected = self.rejected

        rejected_share: float | None
        rejected_share = self.rejected_share

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "pipe": pipe,
                "source": source,
                "accepted": accepted,
                "rejected": rejected,
                "rejected_share": rejected_share,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        version = d.pop("version")

        pipe = d.pop("pipe")

        source = d.pop("source")

        accepted = d.pop("accepted")

        rejected = d.pop("rejected")

        def _parse_rejected_share(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        rejected_share = _parse_rejected_share(d.pop("rejected_share"))

        traffic_line_out = cls(
            version=version,
            pipe=pipe,
            source=source,
            accepted=accepted,
            rejected=rejected,
            rejected_share=rejected_share,
        )

        traffic_line_out.additional_properties = d
        return traffic_line_out

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
