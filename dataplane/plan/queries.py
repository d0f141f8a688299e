"""Which of the queries beside a cell's lanes a spec asks for. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from dataplane.names import QUERY_INPUTS
from dataplane.spec import LakeDestination, PipeSpec

_ASKED_BY: Final[Mapping[str, Callable[[PipeSpec], bool]]] = {
    "dedup": lambda spec: spec.dedup is not None,
    "windows": lambda spec: bool(spec.windows),
    "lake": lambda spec: any(isinstance(to, LakeDestination) for to in spec.destinations.values()),
}


def is_asked(query: str, spec: PipeSpec) -> bool:
    """Whether a spec asks for the query of that name."""
    return _ASKED_BY[query](spec)


def queries_of(spec: PipeSpec) -> list[str]:
    """The names of those that it asks for."""
    return [query for query in QUERY_INPUTS if is_asked(query, spec)]
