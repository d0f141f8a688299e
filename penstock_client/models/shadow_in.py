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


T = TypeVar("T", bound="ShadowIn")


@_attrs_define
class ShadowIn:
    """Draft to run over real events.

    Attributes:
        spec (PipeSpec):
        based_on (int): Number of the newest revision that you read, which the draft changes.
        follow (bool | Unset): Follow live traffic from now on, until the run is stopped. Default: False.
        events (int | None | Unset): Number of events after which it ends, or soon after. Default: the newest 10,000;
            with a range, 1,000,000.
        since (datetime.datetime | None | Unset): Ingest time of the first events. Default: see `events`.
        until (datetime.datetime | None | Unset): Ingest time before which the last events arrived.
    """

    spec: PipeSpec
    based_on: int
    follow: bool | Unset = False
    events: int | None | Unset = UNSET
    since: datetime.datetime | None | Unset = UNSET
    until: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        spec = self.spec.to_dict()

        based_on = self.based_on

        follow = self.follow

        events: int | None | Unset
        if isinstance(self.events, Unset):
            events = UNSET
        else:
            events = self.events

        since: None | str | Unset
        if isinstance(self.since, Unset):
            since = UNSET
        elif isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        until: None | str | Unset
        if isinstance(self.until, Unset):
            until = UNSET
        elif isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "spec": spec,
                "based_on": based_on,
            }
        )
        if follow is not UNSET:
            field_dict["follow"] = follow
        if events is not UNSET:
            field_dict["events"] = events
        if since is not UNSET:
            field_dict["since"] = since
        if until is not UNSET:
            field_dict["until"] = until

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        d = dict(src_dict)
        spec = PipeSpec.from_dict(d.pop("spec"))

        based_on = d.pop("based_on")

        follow = d.pop("follow", UNSET)

        def _parse_events(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        events = _parse_events(d.pop("events", UNSET))

        def _parse_since(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        since = _parse_since(d.pop("since", UNSET))

        def _parse_until(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                until_type_0 = datetime.datetime.fromisoformat(data)

                return until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        until = _parse_until(d.pop("until", UNSET))

        shadow_in = cls(
            spec=spec,
            based_on=based_on,
            follow=follow,
            events=events,
            since=since,
            until=until,
        )

        shadow_in.additional_properties = d
        return shadow_in

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
