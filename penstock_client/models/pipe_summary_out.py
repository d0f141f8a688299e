from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="PipeSummaryOut")


@_attrs_define
class PipeSummaryOut:
    """A pipe with its figures of the last hour.

    Attributes:
        pipe (str): Id of the pipe.
        name (str): Name.
        state (str): `live`, `coming` (not deployed yet), `failed`, `paused` or `closed`.
        reason (str): Why it waits or failed.
        revision (int): Live revision; 0 without any.
        next_revision (int | None): Revision that is being introduced, or has failed.
        share (int | None): Percent of the keys that the next revision has now.
        per_s (float): Events accepted per second in the last minute.
        lag_p95_us (int | None): 95th percentile of the time from the event to the destination's response.
        delivered (int): Messages that were delivered.
        delivered_share (float | None): Share (0 to 1) of the deliveries that succeeded; null without any delivery.
        undelivered (int): Undelivered messages, of all `causes`.
        lost (int): Lost messages of sealed minutes.
        causes (int): Causes of undelivered messages of the last 24 hours.
        needs_you (int): Number of these causes that need a person.
    """

    pipe: str
    name: str
    state: str
    reason: str
    revision: int
    next_revision: int | None
    share: int | None
    per_s: float
    lag_p95_us: int | None
    delivered: int
    delivered_share: float | None
    undelivered: int
    lost: int
    causes: int
    needs_you: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pipe = self.pipe

        name = self.name

        state = self.state

        reason = self.reason

        revision = self.revision

        next_revision: int | None
        next_revision = self.next_revision

        share: int | None
        share = self.share

        per_s = self.per_s

        lag_p95_us: int | None
        lag_p95_us = self.lag_p95_us

        delivered = self.delivered

        delivered_share: float | None
        delivered_share = self.delivered_share

        undelivered = self.undelivered

        lost = self.lost

        causes = self.causes

        needs_you = self.needs_you

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "name": name,
                "state": state,
                "reason": reason,
                "revision": revision,
                "next_revision": next_revision,
                "share": share,
                "per_s": per_s,
                "lag_p95_us": lag_p95_us,
                "delivered": delivered,
                "delivered_share": delivered_share,
                "undelivered": undelivered,
                "lost": lost,
                "causes": causes,
                "needs_you": needs_you,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pipe = d.pop("pipe")

        name = d.pop("name")

        state = d.pop("state")

        reason = d.pop("reason")

        revision = d.pop("revision")

        def _parse_next_revision(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        next_revision = _parse_next_revision(d.pop("next_revision"))

        def _parse_share(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        share = _parse_share(d.pop("share"))

        per_s = d.pop("per_s")

        def _parse_lag_p95_us(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        lag_p95_us = _parse_lag_p95_us(d.pop("lag_p95_us"))

        delivered = d.pop("delivered")

        def _parse_delivered_share(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        delivered_share = _parse_delivered_share(d.pop("delivered_share"))

        undelivered = d.pop("undelivered")

        lost = d.pop("lost")

        causes = d.pop("causes")

        needs_you = d.pop("needs_you")

        pipe_summary_out = cls(
            pipe=pipe,
            name=name,
            state=state,
            reason=reason,
            revision=revision,
            next_revision=next_revision,
            share=share,
            per_s=per_s,
            lag_p95_us=lag_p95_us,
            delivered=delivered,
            delivered_share=delivered_share,
            undelivered=undelivered,
            lost=lost,
            causes=causes,
            needs_you=needs_you,
        )

        pipe_summary_out.additional_properties = d
        return pipe_summary_out

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
