from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.attempt_out import AttemptOut
    from ..models.fact_out import FactOut
    from ..models.sent_request_out import SentRequestOut
    from ..models.stage_out import StageOut


T = TypeVar("T", bound="LegOut")


@_attrs_define
class LegOut:
    """Path of the message to one destination.

    Attributes:
        destination (str): Name of the destination in the spec.
        bin_ (str): One of the bins of a minute; empty if it is not counted there yet.
        last_seen (str): Last node that saw it, if it is lost.
        last_seen_words (str): What happened there, in words; empty if it is not lost.
        facts (list[FactOut]): Facts of the ledger about the message, by time.
        attempts (list[AttemptOut]): Attempts to deliver, in order.
        transform (None | StageOut): Steps of this destination; null if it has none.
        request (None | SentRequestOut): Request that was sent; null if there was none.
        dead_letter (int | None): Id of its dead letter; null if it has none.
        to_egress_us (int | None): Time from ingest to the end of processing.
        to_answer_us (int | None): Time from there to the response.
        whole_us (int | None): Time from ingest to the response.
    """

    destination: str
    bin_: str
    last_seen: str
    last_seen_words: str
    facts: list[FactOut]
    attempts: list[AttemptOut]
    transform: None | StageOut
    request: None | SentRequestOut
    dead_letter: int | None
    to_egress_us: int | None
    to_answer_us: int | None
    whole_us: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.attempt_out import AttemptOut  # noqa: PLC0415
        from ..models.fact_out import FactOut  # noqa: PLC0415
        from ..models.sent_request_out import SentRequestOut  # noqa: PLC0415
        from ..models.stage_out import StageOut  # noqa: PLC0415

        destination = self.destination

        bin_ = self.bin_

        last_seen = self.last_seen

        last_seen_words = self.last_seen_words

        facts = []
        for facts_item_data in self.facts:
            facts_item = facts_item_data.to_dict()
            facts.append(facts_item)

        attempts = []
        for attempts_item_data in self.attempts:
            attempts_item = attempts_item_data.to_dict()
            attempts.append(attempts_item)

        transform: dict[str, Any] | None
        if isinstance(self.transform, StageOut):
            transform = self.transform.to_dict()
        else:
            transform = self.transform

        request: dict[str, Any] | None
        if isinstance(self.request, SentRequestOut):
            request = self.request.to_dict()
        else:
            request = self.request

        dead_letter: int | None
        dead_letter = self.dead_letter

        to_egress_us: int | None
        to_egress_us = self.to_egress_us

        to_answer_us: int | None
        to_answer_us = self.to_answer_us

        whole_us: int | None
        whole_us = self.whole_us

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "destination": destination,
                "bin": bin_,
                "last_seen": last_seen,
                "last_seen_words": last_seen_words,
                "facts": facts,
                "attempts": attempts,
                "transform": transform,
                "request": request,
                "dead_letter": dead_letter,
                "to_egress_us": to_egress_us,
                "to_answer_us": to_answer_us,
                "whole_us": whole_us,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt_out import AttemptOut  # noqa: PLC0415
        from ..models.fact_out import FactOut  # noqa: PLC0415
        from ..models.sent_request_out import SentRequestOut  # noqa: PLC0415
        from ..models.stage_out import StageOut  # noqa: PLC0415

        d = dict(src_dict)
        destination = d.pop("destination")

        bin_ = d.pop("bin")

        last_seen = d.pop("last_seen")

        last_seen_words = d.pop("last_seen_words")

        facts = []
        _facts = d.pop("facts")
        for facts_item_data in _facts:
            facts_item = FactOut.from_dict(facts_item_data)

            facts.append(facts_item)

        attempts = []
        _attempts = d.pop("attempts")
        for attempts_item_data in _attempts:
            attempts_item = AttemptOut.from_dict(attempts_item_data)

            attempts.append(attempts_item)

        def _parse_transform(data: object) -> None | StageOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                transform_type_0 = StageOut.from_dict(data)

                return transform_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StageOut, data)

        transform = _parse_transform(d.pop("transform"))

        def _parse_request(data: object) -> None | SentRequestOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                request_type_0 = SentRequestOut.from_dict(data)

                return request_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SentRequestOut, data)

        request = _parse_request(d.pop("request"))

        def _parse_dead_letter(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        dead_letter = _parse_dead_letter(d.pop("dead_letter"))

        def _parse_to_egress_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        to_egress_us = _parse_to_egress_us(d.pop("to_egress_us"))

        def _parse_to_answer_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        to_answer_us = _parse_to_answer_us(d.pop("to_answer_us"))

        def _parse_whole_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        whole_us = _parse_whole_us(d.pop("whole_us"))

        leg_out = cls(
            destination=destination,
            bin_=bin_,
            last_seen=last_seen,
            last_seen_words=last_seen_words,
            facts=facts,
            attempts=attempts,
            transform=transform,
            request=request,
            dead_letter=dead_letter,
            to_egress_us=to_egress_us,
            to_answer_us=to_answer_us,
            whole_us=whole_us,
        )

        leg_out.additional_properties = d
        return leg_out

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
