from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="LetterOut")


@_attrs_define
class LetterOut:
    """A dead letter and its cause. Its body is kept for the retention time of the topic.

    Attributes:
        id (int): Number of the dead letter.
        destination (str): Name of the destination in the spec.
        node (str): Node of the pipe's graph.
        cause (str): Cause, one of a fixed list of codes.
        detail (str): Reason, for people.
        answer (str): Status and beginning of the response, secrets masked.
        message_id (str): Id of the message, a TimeUuid. Requests carry it as `webhook-id`.
        key (str): Key of the message; empty if it has none.
        revision (int): Number of the revision.
        attempts (int): Attempts to deliver.
        at (datetime.datetime): Time at which the message was dead-lettered.
        move (None | str): Id of the redrive or release that includes it; null if none does.
    """

    id: int
    destination: str
    node: str
    cause: str
    detail: str
    answer: str
    message_id: str
    key: str
    revision: int
    attempts: int
    at: datetime.datetime
    move: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        destination = self.destination

        node = self.node

        cause = self.cause

        detail = self.detail

        answer = self.answer

        message_id = self.message_id

        key = self.key

        revision = self.revision

        attempts = self.attempts

        at = self.at.isoformat()

        move: None | str
        move = self.move

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "destination": destination,
                "node": node,
                "cause": cause,
                "detail": detail,
                "answer": answer,
                "message_id": message_id,
                "key": key,
                "revision": revision,
                "attempts": attempts,
                "at": at,
                "move": move,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        destination = d.pop("destination")

        node = d.pop("node")

        cause = d.pop("cause")

        detail = d.pop("detail")

        answer = d.pop("answer")

        message_id = d.pop("message_id")

        key = d.pop("key")

        revision = d.pop("revision")

        attempts = d.pop("attempts")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        def _parse_move(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        move = _parse_move(d.pop("move"))

        letter_out = cls(
            id=id,
            destination=destination,
            node=node,
            cause=cause,
            detail=detail,
            answer=answer,
            message_id=message_id,
            key=key,
            revision=revision,
            attempts=attempts,
            at=at,
            move=move,
        )

        letter_out.additional_properties = d
        return letter_out

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
