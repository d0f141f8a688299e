from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.destination_out_config import DestinationOutConfig


T = TypeVar("T", bound="DestinationOut")


@_attrs_define
class DestinationOut:
    """A destination of a pipe, as it is used now.

    Attributes:
        name (str): Name of the destination in the spec.
        state (str): * `active` - Active
            * `paused` - Paused
            * `suspended` - Suspended
            * `removed` - Removed
        state_cause (str): Cause of the suspension.
        state_reason (str): Description of the response that led to it.
        state_since (datetime.datetime): Time since which it is in this state.
        config (DestinationOutConfig): Configuration of the destination in the live spec.
        has_credential (bool): True if the secret for its authentication is stored.
        signing_secrets (int): Number of secrets that sign each message.
        created_at (datetime.datetime): Time of creation.
    """

    name: str
    state: str
    state_cause: str
    state_reason: str
    state_since: datetime.datetime
    config: DestinationOutConfig
    has_credential: bool
    signing_secrets: int
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.destination_out_config import DestinationOutConfig  # noqa: PLC0415

        name = self.name

        state = self.state

        state_cause = self.state_cause

        state_reason = self.state_reason

        state_since = self.state_since.isoformat()

        config = self.config.to_dict()

        has_credential = self.has_credential

        signing_secrets = self.signing_secrets

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "state": state,
                "state_cause": state_cause,
                "state_reason": state_reason,
                "state_since": state_since,
                "config": config,
                "has_credential": has_credential,
                "signing_secrets": signing_secrets,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.destination_out_config import DestinationOutConfig  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        state = d.pop("state")

        state_cause = d.pop("state_cause")

        state_reason = d.pop("state_reason")

        state_since = datetime.datetime.fromisoformat(d.pop("state_since"))

        config = DestinationOutConfig.from_dict(d.pop("config"))

        has_credential = d.pop("has_credential")

        signing_secrets = d.pop("signing_secrets")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        destination_out = cls(
            name=name,
            state=state,
            state_cause=state_cause,
            state_reason=state_reason,
            state_since=state_since,
            config=config,
            has_credential=has_credential,
            signing_secrets=signing_secrets,
            created_at=created_at,
        )

        destination_out.additional_properties = d
        return destination_out

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
