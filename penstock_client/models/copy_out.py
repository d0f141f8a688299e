from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="CopyOut")


@_attrs_define
class CopyOut:
    """Copy of a message, made by a peek step.

    Attributes:
        at (datetime.datetime): Time at which the copy was stored.
        node (str): Node of the pipe's graph.
        step (str): Name of the peek step.
        message (str): Id of the message.
        position (str): Position of the event: generation, partition and offset.
        child (int): Number of the part of an exploded event, from 0; 0 for an event that was not exploded.
        revision (int): Number of the revision.
        body (str): The message at this step; a long body is cut.
        is_cut (bool): True if the body is longer than the part shown.
    """

    at: datetime.datetime
    node: str
    step: str
    message: str
    position: str
    child: int
    revision: int
    body: str
    is_cut: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        node = self.node

        step = self.step

        message = self.message

        position = self.position

        child = self.child

        revision = self.revision

        body = self.body

        is_cut = self.is_cut

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "node": node,
                "step": step,
                "message": message,
                "position": position,
                "child": child,
                "revision": revision,
                "body": body,
                "is_cut": is_cut,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        node = d.pop("node")

        step = d.pop("step")

        message = d.pop("message")

        position = d.pop("position")

        child = d.pop("child")

        revision = d.pop("revision")

        body = d.pop("body")

        is_cut = d.pop("is_cut")

        copy_out = cls(
            at=at,
            node=node,
            step=step,
            message=message,
            position=position,
            child=child,
            revision=revision,
            body=body,
            is_cut=is_cut,
        )

        copy_out.additional_properties = d
        return copy_out

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
