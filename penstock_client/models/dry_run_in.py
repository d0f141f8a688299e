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


T = TypeVar("T", bound="DryRunIn")


@_attrs_define
class DryRunIn:
    """Spec and event of a dry run.

    Attributes:
        spec (PipeSpec):
        event (Any | Unset): Body of the event. Default: the newest event of `pipe`.
        source (str | Unset): Source at which the event enters. Default: the spec's first source.
        pipe (str | Unset): Pipe whose newest event is used by default, and whose tenant's salt is used for hashes.
    """

    spec: PipeSpec
    event: Any | Unset = UNSET
    source: str | Unset = UNSET
    pipe: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        spec = self.spec.to_dict()

        event = self.event

        source = self.source

        pipe = self.pipe

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "spec": spec,
            }
        )
        if event is not UNSET:
            field_dict["event"] = event
        if source is not UNSET:
            field_dict["source"] = source
        if pipe is not UNSET:
            field_dict["pipe"] = pipe

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.pipe_spec import PipeSpec  # noqa: PLC0415

        d = dict(src_dict)
        spec = PipeSpec.from_dict(d.pop("spec"))

        event = d.pop("event", UNSET)

        source = d.pop("source", UNSET)

        pipe = d.pop("pipe", UNSET)

        dry_run_in = cls(
            spec=spec,
            event=event,
            source=source,
            pipe=pipe,
        )

        dry_run_in.additional_properties = d
        return dry_run_in

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
