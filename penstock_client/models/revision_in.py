from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.pipe_spec import PipeSpec
    from ..models.revision_in_credentials import RevisionInCredentials


T = TypeVar("T", bound="RevisionIn")


@_attrs_define
class RevisionIn:
    """Revision to publish.

    Attributes:
        spec (PipeSpec):
        based_on (int): Number of the newest revision that you read.
        credentials (RevisionInCredentials | Unset): Secrets by destination; required where the scheme, host, port,
            token URL or access key changes.
        at_once (bool | None | Unset): True: it takes all keys at once; false: it ramps. By default it takes all keys at
            once only if Penstock paused the pipe because the live revision fails.
    """

    spec: PipeSpec
    based_on: int
    credentials: RevisionInCredentials | Unset = UNSET
    at_once: bool | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415
        from ..models.revision_in_credentials import RevisionInCredentials  # noqa: PLC0415

        spec = self.spec.to_dict()

        based_on = self.based_on

        credentials: dict[str, Any] | Unset = UNSET
        if not isinstance(self.credentials, Unset):
            credentials = self.credentials.to_dict()

        at_once: bool | None | Unset
        if isinstance(self.at_once, Unset):
            at_once = UNSET
        else:
            at_once = self.at_once

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "spec": spec,
                "based_on": based_on,
            }
        )
        if credentials is not UNSET:
            field_dict["credentials"] = credentials
        if at_once is not UNSET:
            field_dict["at_once"] = at_once

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415
        from ..models.revision_in_credentials import RevisionInCredentials  # noqa: PLC0415

        d = dict(src_dict)
        spec = PipeSpec.from_dict(d.pop("spec"))

        based_on = d.pop("based_on")

        _credentials = d.pop("credentials", UNSET)
        credentials: RevisionInCredentials | Unset
        if isinstance(_credentials, Unset):
            credentials = UNSET
        else:
            credentials = RevisionInCredentials.from_dict(_credentials)

        def _parse_at_once(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        at_once = _parse_at_once(d.pop("at_once", UNSET))

        revision_in = cls(
            spec=spec,
            based_on=based_on,
            credentials=credentials,
            at_once=at_once,
        )

        revision_in.additional_properties = d
        return revision_in

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
