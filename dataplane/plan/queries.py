"""Structured Streaming queries that a spec needs besides the lanes of its cell. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from dataplane.spec import LakeDestination, PipeSpec

_NEEDED_BY: Final[Mapping[str, Callable[[PipeSpec], bool]]] = {
    "dedup": lambda spec: spec.dedup is not None,
    "windows": lambda spec: bool(spec.windows),
    "sequence": lambda spec: any(source.sequence for source in spec.sources.values()),
    "bulk": lambda spec: spec.execution == "bulk",
    "lake": lambda spec: any(isinstance(to, LakeDestination) for to in spec.destinations.values()),
}


def needs_query(query: str, spec: PipeSpec) -> bool:
    """Return True if a spec needs the query of that name. Raises KeyError for an unknown name."""
    return _NEEDED_BY[query](spec)
