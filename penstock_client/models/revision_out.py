from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.pipe_spec import PipeSpec


T = TypeVar("T", bound="RevisionOut")


@_attrs_define
class RevisionOut:
    """One immutable version of a pipe's spec.

    Attributes:
        number (int): Number of the revision, from 1.
        state (str): * `requested` - Requested
            * `ramping` - Ramping
            * `live` - Live
            * `retired` - Retired
            * `failed` - Failed
        state_reason (str): Reason why it waits or failed.
        at_once (bool): True if it takes all keys at once instead of ramping.
        spec (PipeSpec):
        created_at (datetime.datetime): Time of creation.
        live_at (datetime.datetime | None): Time at which it became live; null if it never was.
        author (None | str | Unset): User who created it; null if the user was deleted or Penstock created it.
    """

    number: int
    state: str
    state_reason: str
    at_once: bool
    spec: PipeSpec
    created_at: datetime.datetime
    live_at: datetime.datetime | None
    author: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        number = self.number

        state = self.state

        state_reason = self.state_reason

        at_once = self.at_once

        spec = self.spec.to_dict()

        created_at = self.created_at.isoformat()

        live_at: None | str
        if isinstance(self.live_at, datetime.datetime):
            live_at = self.live_at.isoformat()
        else:
            live_at = self.live_at

        author: None | str | Unset
        if isinstance(self.author, Unset):
            author = UNSET
        else:
            author = self.author

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "state": state,
                "state_reason": state_reason,
                "at_once": at_once,
                "spec": spec,
                "created_at": created_at,
                "live_at": live_at,
            }
        )
        if author is not UNSET:
            field_dict["author"] = author

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        d = dict(src_dict)
        number = d.pop("number")

        state = d.pop("state")

        state_reason = d.pop("state_reason")

        at_once = d.pop("at_once")

        spec = PipeSpec.from_dict(d.pop("spec"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_live_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                live_at_type_0 = datetime.datetime.fromisoformat(data)

                return live_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        live_at = _parse_live_at(d.pop("live_at"))

        def _parse_author(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        author = _parse_author(d.pop("author", UNSET))

        revision_out = cls(
            number=number,
            state=state,
            state_reason=state_reason,
            at_once=at_once,
            spec=spec,
            created_at=created_at,
            live_at=live_at,
            author=author,
        )

        revision_out.additional_properties = d
        return revision_out

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
