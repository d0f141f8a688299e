from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.audit_entry_out_after import AuditEntryOutAfter
    from ..models.audit_entry_out_before import AuditEntryOutBefore


T = TypeVar("T", bound="AuditEntryOut")


@_attrs_define
class AuditEntryOut:
    """One change, with its actor.

    Attributes:
        id (str): Id.
        at (datetime.datetime): Time of the event.
        sentence (str): Return the entry in words.
        actor_kind (str): * `user` - User
            * `token` - Token
            * `staff` - Staff
            * `system` - System
        actor (str): User name; of a token, that of its user.
        token_id (str): Id of the API token; empty for other kinds of actors.
        token_name (str): Name of the API token of the request; empty without one.
        address (str): IP address of the client; empty outside requests.
        request_id (str): Id of the request, also in the header X-Request-Id and in the logs.
        action (str): Action that the controller took or wanted to take.
        target_kind (str): Kind of the changed object.
        target_id (str): Id of the changed object.
        target_name (str): Name of the target at that time.
        pipe (None | str): Pipe that the target belongs to.
        before (AuditEntryOutBefore): Changed fields before the change. Secrets are only said to have changed.
        after (AuditEntryOutAfter): Changed fields after the change.
    """

    id: str
    at: datetime.datetime
    sentence: str
    actor_kind: str
    actor: str
    token_id: str
    token_name: str
    address: str
    request_id: str
    action: str
    target_kind: str
    target_id: str
    target_name: str
    pipe: None | str
    before: AuditEntryOutBefore
    after: AuditEntryOutAfter
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.audit_entry_out_after import AuditEntryOutAfter  # noqa: PLC0415
        from ..models.audit_entry_out_before import AuditEntryOutBefore  # noqa: PLC0415

        id = self.id

        at = self.at.isoformat()

        sentence = self.sentence

        actor_kind = self.actor_kind

        actor = self.actor

        token_id = self.token_id

        token_name = self.token_name

        address = self.address

        request_id = self.request_id

        action = self.action

        target_kind = self.target_kind

        target_id = self.target_id

        target_name = self.target_name

        pipe: None | str
        pipe = self.pipe

        before = self.before.to_dict()

        after = self.after.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "at": at,
                "sentence": sentence,
                "actor_kind": actor_kind,
                "actor": actor,
                "token_id": token_id,
                "token_name": token_name,
                "address": address,
                "request_id": request_id,
                "action": action,
                "target_kind": target_kind,
                "target_id": target_id,
                "target_name": target_name,
                "pipe": pipe,
                "before": before,
                "after": after,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.audit_entry_out_after import AuditEntryOutAfter  # noqa: PLC0415
        from ..models.audit_entry_out_before import AuditEntryOutBefore  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        sentence = d.pop("sentence")

        actor_kind = d.pop("actor_kind")

        actor = d.pop("actor")

        token_id = d.pop("token_id")

        token_name = d.pop("token_name")

        address = d.pop("address")

        request_id = d.pop("request_id")

        action = d.pop("action")

        target_kind = d.pop("target_kind")

        target_id = d.pop("target_id")

        target_name = d.pop("target_name")

        def _parse_pipe(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        pipe = _parse_pipe(d.pop("pipe"))

        before = AuditEntryOutBefore.from_dict(d.pop("before"))

        after = AuditEntryOutAfter.from_dict(d.pop("after"))

        audit_entry_out = cls(
            id=id,
            at=at,
            sentence=sentence,
            actor_kind=actor_kind,
            actor=actor,
            token_id=token_id,
            token_name=token_name,
            address=address,
            request_id=request_id,
            action=action,
            target_kind=target_kind,
            target_id=target_id,
            target_name=target_name,
            pipe=pipe,
            before=before,
            after=after,
        )

        audit_entry_out.additional_properties = d
        return audit_entry_out

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
