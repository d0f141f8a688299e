from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.stored_out import StoredOut


T = TypeVar("T", bound="OneLetterOut")


@_attrs_define
class OneLetterOut:
    """A dead letter with its message, or null and the reason if the message cannot be read.

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
        message (None | StoredOut): The message as it was stored; null if it is no longer stored.
        message_missing (str): Reason for which there is no `message`; empty if there is one.
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
    message: None | StoredOut
    message_missing: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.stored_out import StoredOut  # noqa: PLC0415

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

        message: dict[str, Any] | None
        if isinstance(self.message, StoredOut):
            message = self.message.to_dict()
        else:
            message = self.message

        message_missing = self.message_missing

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
                "message": message,
                "message_missing": message_missing,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.stored_out import StoredOut  # noqa: PLC0415

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

        def _parse_message(data: object) -> None | StoredOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                message_type_0 = StoredOut.from_dict(data)

                return message_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StoredOut, data)

        message = _parse_message(d.pop("message"))

        message_missing = d.pop("message_missing")

        one_letter_out = cls(
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
            message=message,
            message_missing=message_missing,
        )

        one_letter_out.additional_properties = d
        return one_letter_out

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
