from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="LimitsIn")


@_attrs_define
class LimitsIn:
    """Limits by kind. Null resets a limit to its default; an omitted limit is unchanged.

    Attributes:
        events_per_s (int | None | Unset): events that ingest accepts per second
        bytes_per_s (int | None | Unset): request bodies, decompressed, per second
        in_flight_bytes (int | None | Unset): request bodies that one ingest replica is reading or storing at the same
            time
        process_weight (int | None | Unset): share of the process lanes' CPU relative to other tenants while they
            compete; 100 is normal
        pipes (int | None | Unset): pipes that are not closed
        destinations_per_pipe (int | None | Unset): destinations of one pipe
        topics (int | None | Unset): destinations of type topic, over all pipes
        partitions (int | None | Unset): partitions of these topics together
        api_keys (int | None | Unset): keys that are neither revoked nor expired
        live_tails (int | None | Unset): live tails that are open at the same time
        live_tails_per_user (int | None | Unset): of these, by one user
        subjects (int | None | Unset): subjects of the schema registry
        schema_versions (int | None | Unset): versions of these subjects together
        replay_units_per_s (int | None | Unset): highest rate of a replay, over all its destinations; a tenant has one
            replay at a time
        table_sources (int | None | Unset): sources of type table, over all pipes that are not closed; each costs every
            ingest replica a Kafka consumer
    """

    events_per_s: int | None | Unset = UNSET
    bytes_per_s: int | None | Unset = UNSET
    in_flight_bytes: int | None | Unset = UNSET
    process_weight: int | None | Unset = UNSET
    pipes: int | None | Unset = UNSET
    destinations_per_pipe: int | None | Unset = UNSET
    topics: int | None | Unset = UNSET
    partitions: int | None | Unset = UNSET
    api_keys: int | None | Unset = UNSET
    live_tails: int | None | Unset = UNSET
    live_tails_per_user: int | None | Unset = UNSET
    subjects: int | None | Unset = UNSET
    schema_versions: int | None | Unset = UNSET
    replay_units_per_s: int | None | Unset = UNSET
    table_sources: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        events_per_s: int | None | Unset
        if isinstance(self.events_per_s, Unset):
            events_per_s = UNSET
        else:
            events_per_s = self.events_per_s

        bytes_per_s: int | None | Unset
        if isinstance(self.bytes_per_s, Unset):
            bytes_per_s = UNSET
        else:
            bytes_per_s = self.bytes_per_s

        in_flight_bytes: int | None | Unset
        if isinstance(self.in_flight_bytes, Unset):
            in_flight_bytes = UNSET
        else:
            in_flight_bytes = self.in_flight_bytes

        process_weight: int | None | Unset
        if isinstance(self.process_weight, Unset):
            process_weight = UNSET
        else:
            process_weight = self.process_weight

        pipes: int | None | Unset
        if isinstance(self.pipes, Unset):
            pipes = UNSET
        else:
            pipes = self.pipes

        destinations_per_pipe: int | None | Unset
        if isinstance(self.destinations_per_pipe, Unset):
            destinations_per_pipe = UNSET
        else:
            destinations_per_pipe = self.destinations_per_pipe

        topics: int | None | Unset
        if isinstance(self.topics, Unset):
            topics = UNSET
        else:
            topics = self.topics

        partitions: int | None | Unset
        if isinstance(self.partitions, Unset):
            partitions = UNSET
        else:
            partitions = self.partitions

        api_keys: int | None | Unset
        if isinstance(self.api_keys, Unset):
            api_keys = UNSET
        else:
            api_keys = self.api_keys

        live_tails: int | None | Unset
        if isinstance(self.live_tails, Unset):
            live_tails = UNSET
        else:
            live_tails = self.live_tails

        live_tails_per_user: int | None | Unset
        if isinstance(self.live_tails_per_user, Unset):
            live_tails_per_user = UNSET
        else:
            live_tails_per_user = self.live_tails_per_user

        subjects: int | None | Unset
        if isinstance(self.subjects, Unset):
            subjects = UNSET
        else:
            subjects = self.subjects

        schema_versions: int | None | Unset
        if isinstance(self.schema_versions, Unset):
            schema_versions = UNSET
        else:
            schema_versions = self.schema_versions

        replay_units_per_s: int | None | Unset
        if isinstance(self.replay_units_per_s, Unset):
            replay_units_per_s = UNSET
        else:
            replay_units_per_s = self.replay_units_per_s

        table_sources: int | None | Unset
        if isinstance(self.table_sources, Unset):
            table_sources = UNSET
        else:
            table_sources = self.table_sources

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if events_per_s is not UNSET:
            field_dict["events_per_s"] = events_per_s
        if bytes_per_s is not UNSET:
            field_dict["bytes_per_s"] = bytes_per_s
        if in_flight_bytes is not UNSET:
            field_dict["in_flight_bytes"] = in_flight_bytes
        if process_weight is not UNSET:
            field_dict["process_weight"] = process_weight
        if pipes is not UNSET:
            field_dict["pipes"] = pipes
        if destinations_per_pipe is not UNSET:
            field_dict["destinations_per_pipe"] = destinations_per_pipe
        if topics is not UNSET:
            field_dict["topics"] = topics
        if partitions is not UNSET:
            field_dict["partitions"] = partitions
        if api_keys is not UNSET:
            field_dict["api_keys"] = api_keys
        if live_tails is not UNSET:
            field_dict["live_tails"] = live_tails
        if live_tails_per_user is not UNSET:
            field_dict["live_tails_per_user"] = live_tails_per_user
        if subjects is not UNSET:
            field_dict["subjects"] = subjects
        if schema_versions is not UNSET:
            field_dict["schema_versions"] = schema_versions
        if replay_units_per_s is not UNSET:
            field_dict["replay_units_per_s"] = replay_units_per_s
        if table_sources is not UNSET:
            field_dict["table_sources"] = table_sources

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_events_per_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        events_per_s = _parse_events_per_s(d.pop("events_per_s", UNSET))

        def _parse_bytes_per_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        bytes_per_s = _parse_bytes_per_s(d.pop("bytes_per_s", UNSET))

        def _parse_in_flight_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        in_flight_bytes = _parse_in_flight_bytes(d.pop("in_flight_bytes", UNSET))

        def _parse_process_weight(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        process_weight = _parse_process_weight(d.pop("process_weight", UNSET))

        def _parse_pipes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        pipes = _parse_pipes(d.pop("pipes", UNSET))

        def _parse_destinations_per_pipe(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        destinations_per_pipe = _parse_destinations_per_pipe(d.pop("destinations_per_pipe", UNSET))

        def _parse_topics(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        topics = _parse_topics(d.pop("topics", UNSET))

        def _parse_partitions(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        partitions = _parse_partitions(d.pop("partitions", UNSET))

        def _parse_api_keys(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        api_keys = _parse_api_keys(d.pop("api_keys", UNSET))

        def _parse_live_tails(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        live_tails = _parse_live_tails(d.pop("live_tails", UNSET))

        def _parse_live_tails_per_user(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        live_tails_per_user = _parse_live_tails_per_user(d.pop("live_tails_per_user", UNSET))

        def _parse_subjects(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        subjects = _parse_subjects(d.pop("subjects", UNSET))

        def _parse_schema_versions(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        schema_versions = _parse_schema_versions(d.pop("schema_versions", UNSET))

        def _parse_replay_units_per_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        replay_units_per_s = _parse_replay_units_per_s(d.pop("replay_units_per_s", UNSET))

        def _parse_table_sources(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        table_sources = _parse_table_sources(d.pop("table_sources", UNSET))

        limits_in = cls(
            events_per_s=events_per_s,
            bytes_per_s=bytes_per_s,
            in_flight_bytes=in_flight_bytes,
            process_weight=process_weight,
            pipes=pipes,
            destinations_per_pipe=destinations_per_pipe,
            topics=topics,
            partitions=partitions,
            api_keys=api_keys,
            live_tails=live_tails,
            live_tails_per_user=live_tails_per_user,
            subjects=subjects,
            schema_versions=schema_versions,
            replay_units_per_s=replay_units_per_s,
            table_sources=table_sources,
        )

        limits_in.additional_properties = d
        return limits_in

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
