from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.broker_out import BrokerOut


T = TypeVar("T", bound="KafkaOut")


@_attrs_define
class KafkaOut:
    """Last check of Kafka.

    Attributes:
        at (datetime.datetime): Time of the check.
        state (str): * `healthy` - Healthy
            * `degraded` - Degraded
            * `unreachable` - Unreachable
        since (datetime.datetime): Time since which the cluster is in this state.
        error (str): Error text; empty if there was none.
        brokers (list[BrokerOut]): Brokers of the cluster.
        partitions (int): Number of partitions.
        under_replicated (int): Partitions with fewer replicas in sync than they should have.
        leaderless (int): Partitions without a leader.
        examples (list[str]): Some of these partitions, worst first.
    """

    at: datetime.datetime
    state: str
    since: datetime.datetime
    error: str
    brokers: list[BrokerOut]
    partitions: int
    under_replicated: int
    leaderless: int
    examples: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.broker_out import BrokerOut  # noqa: PLC0415

        at = self.at.isoformat()

        state = self.state

        since = self.since.isoformat()

        error = self.error

        brokers = []
        for brokers_item_data in self.brokers:
            brokers_item = brokers_item_data.to_dict()
            brokers.append(brokers_item)

        partitions = self.partitions

        under_replicated = self.under_replicated

        leaderless = self.leaderless

        examples = self.examples

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "state": state,
                "since": since,
                "error": error,
                "brokers": brokers,
                "partitions": partitions,
                "under_replicated": under_replicated,
                "leaderless": leaderless,
                "examples": examples,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.broker_out import BrokerOut  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        state = d.pop("state")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        error = d.pop("error")

        brokers = []
        _brokers = d.pop("brokers")
        for brokers_item_data in _brokers:
            brokers_item = BrokerOut.from_dict(brokers_item_data)

            brokers.append(brokers_item)

        partitions = d.pop("partitions")

        under_replicated = d.pop("under_replicated")

        leaderless = d.pop("leaderless")

        examples = cast(list[str], d.pop("examples"))

        kafka_out = cls(
            at=at,
            state=state,
            since=since,
            error=error,
            brokers=brokers,
            partitions=partitions,
            under_replicated=under_replicated,
            leaderless=leaderless,
            examples=examples,
        )

        kafka_out.additional_properties = d
        return kafka_out

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
