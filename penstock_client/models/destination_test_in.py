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


T = TypeVar("T", bound="DestinationTestIn")


@_attrs_define
class DestinationTestIn:
    """Test request to a destination: a saved one (with `pipe`), or one of a spec that is not saved (with `spec`).

    Attributes:
        destination (str): Name of the destination in the spec.
        pipe (str | Unset): Pipe of the destination. The request is signed with its secrets; the pipe's steps do not
            run.
        spec (PipeSpec | Unset):
        event (Any | Unset): Body of the request; with `spec`, the event on which the steps run. Default: an example
            event.
        source (str | Unset): Source at which the event enters the spec. Default: its first source.
        tenant (str | Unset): Only with `spec`; required for members of several tenants.
    """

    destination: str
    pipe: str | Unset = UNSET
    spec: PipeSpec | Unset = UNSET
    event: Any | Unset = UNSET
    source: str | Unset = UNSET
    tenant: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        destination = self.destination

        pipe = self.pipe

        spec: dict[str, Any] | Unset = UNSET
        if not isinstance(self.spec, Unset):
            spec = self.spec.to_dict()

        event = self.event

        source = self.source

        tenant = self.tenant

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "destination": destination,
            }
        )
        if pipe is not UNSET:
            field_dict["pipe"] = pipe
        if spec is not UNSET:
            field_dict["spec"] = spec
        if event is not UNSET:
            field_dict["event"] = event
        if source is not UNSET:
            field_dict["source"] = source
        if tenant is not UNSET:
            field_dict["tenant"] = tenant

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        d = dict(src_dict)
        destination = d.pop("destination")

        pipe = d.pop("pipe", UNSET)

        _spec = d.pop("spec", UNSET)
        spec: PipeSpec | Unset
        if isinstance(_spec, Unset):
            spec = UNSET
        else:
            spec = PipeSpec.from_dict(_spec)

        event = d.pop("event", UNSET)

        source = d.pop("source", UNSET)

        tenant = d.pop("tenant", UNSET)

        destination_test_in = cls(
            destination=destination,
            pipe=pipe,
            spec=spec,
            event=event,
            source=source,
            tenant=tenant,
        )

        destination_test_in.additional_properties = d
        return destination_test_in

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
