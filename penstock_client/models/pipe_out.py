from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="PipeOut")


@_attrs_define
class PipeOut:
    """A pipe, and your role in its tenant.

    Attributes:
        id (str): Id of the pipe.
        name (str): Name, unique in the tenant.
        tenant (str): Id of the tenant.
        state (str): * `active` - Active
            * `paused` - Paused
            * `closed` - Closed
        state_cause (str): Cause for which Penstock paused the pipe; empty if a person paused it.
        state_reason (str): Description of the cause.
        cell (None | str): Cell on which the pipe runs; null until it is placed.
        live_revision (int | None): Number of the revision that processes events now; null if there is none.
        newest_revision (int): Number of the newest revision, on which a new one must be based.
        admitted (int): Percent of the pipe's keys that are admitted; messages of the other keys are held.
        loss_threshold_percent (float): Loss of a minute, in percent, above which you are alerted; 0: any lost message.
        my_role (str): * `viewer` - Viewer
            * `operator` - Operator
            * `editor` - Editor
            * `owner` - Owner
        created_at (datetime.datetime): Time of creation.
    """

    id: str
    name: str
    tenant: str
    state: str
    state_cause: str
    state_reason: str
    cell: None | str
    live_revision: int | None
    newest_revision: int
    admitted: int
    loss_threshold_percent: float
    my_role: str
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        name = self.name

        tenant = self.tenant

        state = self.state

        state_cause = self.state_cause

        state_reason = self.state_reason

        cell: None | str
        cell = self.cell

        live_revision: int | None
        live_revision = self.live_revision

        newest_revision = self.newest_revision

        admitted = self.admitted

        loss_threshold_percent = self.loss_threshold_percent

        my_role = self.my_role

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "tenant": tenant,
                "state": state,
                "state_cause": state_cause,
                "state_reason": state_reason,
                "cell": cell,
                "live_revision": live_revision,
                "newest_revision": newest_revision,
                "admitted": admitted,
                "loss_threshold_percent": loss_threshold_percent,
                "my_role": my_role,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        tenant = d.pop("tenant")

        state = d.pop("state")

        state_cause = d.pop("state_cause")

        state_reason = d.pop("state_reason")

        def _parse_cell(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        cell = _parse_cell(d.pop("cell"))

        def _parse_live_revision(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        live_revision = _parse_live_revision(d.pop("live_revision"))

        newest_revision = d.pop("newest_revision")

        admitted = d.pop("admitted")

        loss_threshold_percent = d.pop("loss_threshold_percent")

        my_role = d.pop("my_role")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        pipe_out = cls(
            id=id,
            name=name,
            tenant=tenant,
            state=state,
            state_cause=state_cause,
            state_reason=state_reason,
            cell=cell,
            live_revision=live_revision,
            newest_revision=newest_revision,
            admitted=admitted,
            loss_threshold_percent=loss_threshold_percent,
            my_role=my_role,
            created_at=created_at,
        )

        pipe_out.additional_properties = d
        return pipe_out

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
