from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.arrival_out import ArrivalOut
    from ..models.journey_out_headers import JourneyOutHeaders
    from ..models.leg_out import LegOut
    from ..models.rule_out import RuleOut
    from ..models.stage_out import StageOut


T = TypeVar("T", bound="JourneyOut")


@_attrs_define
class JourneyOut:
    """Journey of one message: what it was, what each stage made of it, and where it is now.

    Attributes:
        pipe (str): Id of the pipe.
        position (str): Position of the event: generation, partition and offset.
        child (int): Number of the part of an exploded event, from 0; 0 for an event that was not exploded.
        children (int): Number of messages that an `explode` step made of it.
        message_id (str): Empty if it is not known.
        minute (int): Minute in which it counts.
        starts (datetime.datetime): Start of that minute.
        revision (int): Revision that processed it; 0 if it is not known.
        state (str): State in words, such as `delivered` or `delivered to 1 of 2`.
        bin_ (str): Bin of a message that ended, waits or is lost before the route; empty if it passed the route.
        last_seen (str): Last node that saw it, if it is lost before the route.
        last_seen_words (str): What happened there, in words; empty if it is not lost.
        arrival (ArrivalOut | None): Arrival of the event at ingest; null if the event is no longer stored.
        headers (JourneyOutHeaders): Headers of the event.
        body (None | str): Body of the event, cut at 64 KiB; null if unavailable.
        body_bytes (int): Size of the whole body.
        unavailable (str): Why the event or its stages cannot be shown, for example after the retention time; else
            empty.
        stages (list[StageOut]): Stages that the event has passed, in order.
        rules (list[RuleOut]): Rules of the routes, in order.
        destinations (list[LegOut]): Those that need attention first.
        not_sent_to (list[str]): Destinations that were not chosen.
    """

    pipe: str
    position: str
    child: int
    children: int
    message_id: str
    minute: int
    starts: datetime.datetime
    revision: int
    state: str
    bin_: str
    last_seen: str
    last_seen_words: str
    arrival: ArrivalOut | None
    headers: JourneyOutHeaders
    body: None | str
    body_bytes: int
    unavailable: str
    stages: list[StageOut]
    rules: list[RuleOut]
    destinations: list[LegOut]
    not_sent_to: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.arrival_out import ArrivalOut  # noqa: PLC0415
        from ..models.journey_out_headers import JourneyOutHeaders  # noqa: PLC0415
        from ..models.leg_out import LegOut  # noqa: PLC0415
        from ..models.rule_out import RuleOut  # noqa: PLC0415
        from ..models.stage_out import StageOut  # noqa: PLC0415

        pipe = self.pipe

        position = self.position

        child = self.child

        children = self.children

        message_id = self.message_id

        minute = self.minute

        starts = self.starts.isoformat()

        revision = self.revision

        state = self.state

        bin_ = self.bin_

        last_seen = self.last_seen

        last_seen_words = self.last_seen_words

        arrival: dict[str, Any] | None
        if isinstance(self.arrival, ArrivalOut):
            arrival = self.arrival.to_dict()
        else:
            arrival = self.arrival

        headers = self.headers.to_dict()

        body: None | str
        body = self.body

        body_bytes = self.body_bytes

        unavailable = self.unavailable

        stages = []
        for stages_item_data in self.stages:
            stages_item = stages_item_data.to_dict()
            stages.append(stages_item)

        rules = []
        for rules_item_data in self.rules:
            rules_item = rules_item_data.to_dict()
            rules.append(rules_item)

        destinations = []
        for destinations_item_data in self.destinations:
            destinations_item = destinations_item_data.to_dict()
            destinations.append(destinations_item)

        not_sent_to = self.not_sent_to

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "position": position,
                "child": child,
                "children": children,
                "message_id": message_id,
                "minute": minute,
                "starts": starts,
                "revision": revision,
                "state": state,
                "bin": bin_,
                "last_seen": last_seen,
                "last_seen_words": last_seen_words,
                "arrival": arrival,
                "headers": headers,
                "body": body,
                "body_bytes": body_bytes,
                "unavailable": unavailable,
                "stages": stages,
                "rules": rules,
                "destinations": destinations,
                "not_sent_to": not_sent_to,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.arrival_out import ArrivalOut  # noqa: PLC0415
        from ..models.journey_out_headers import JourneyOutHeaders  # noqa: PLC0415
        from ..models.leg_out import LegOut  # noqa: PLC0415
        from ..models.rule_out import RuleOut  # noqa: PLC0415
        from ..models.stage_out import StageOut  # noqa: PLC0415

        d = dict(src_dict)
        pipe = d.pop("pipe")

        position = d.pop("position")

        child = d.pop("child")

        children = d.pop("children")

        message_id = d.pop("message_id")

        minute = d.pop("minute")

        starts = datetime.datetime.fromisoformat(d.pop("starts"))

        revision = d.pop("revision")

        state = d.pop("state")

        bin_ = d.pop("bin")

        last_seen = d.pop("last_seen")

        last_seen_words = d.pop("last_seen_words")

        def _parse_arrival(data: object) -> ArrivalOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                arrival_type_0 = ArrivalOut.from_dict(data)

                return arrival_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ArrivalOut | None, data)

        arrival = _parse_arrival(d.pop("arrival"))

        headers = JourneyOutHeaders.from_dict(d.pop("headers"))

        def _parse_body(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        body = _parse_body(d.pop("body"))

        body_bytes = d.pop("body_bytes")

        unavailable = d.pop("unavailable")

        stages = []
        _stages = d.pop("stages")
        for stages_item_data in _stages:
            stages_item = StageOut.from_dict(stages_item_data)

            stages.append(stages_item)

        rules = []
        _rules = d.pop("rules")
        for rules_item_data in _rules:
            rules_item = RuleOut.from_dict(rules_item_data)

            rules.append(rules_item)

        destinations = []
        _destinations = d.pop("destinations")
        for destinations_item_data in _destinations:
            destinations_item = LegOut.from_dict(destinations_item_data)

            destinations.append(destinations_item)

        not_sent_to = cast(list[str], d.pop("not_sent_to"))

        journey_out = cls(
            pipe=pipe,
            position=position,
            child=child,
            children=children,
            message_id=message_id,
            minute=minute,
            starts=starts,
            revision=revision,
            state=state,
            bin_=bin_,
            last_seen=last_seen,
            last_seen_words=last_seen_words,
            arrival=arrival,
            headers=headers,
            body=body,
            body_bytes=body_bytes,
            unavailable=unavailable,
            stages=stages,
            rules=rules,
            destinations=destinations,
            not_sent_to=not_sent_to,
        )

        journey_out.additional_properties = d
        return journey_out

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
