"""Whether a pipe uses the queries that run beside its cell's lanes. Pure.

They keep a memory that stays in the cell, and work on after the last message, by how much lanes do not show.
"""

from collections.abc import Mapping

from dataplane.spec import Destination, LakeDestination, PipeSpec


def query_in_use(specs: Mapping[int, PipeSpec], destinations: Mapping[str, Destination]) -> str:
    """What of a pipe with these revisions (by number) and destinations needs a query, in words; "" if nothing."""
    for number, spec in specs.items():
        if spec.dedup is not None:
            return f"revision {number} has dedup"
        if spec.windows:
            return f"revision {number} has windows"
    lakes = (name for name, to in destinations.items() if isinstance(to, LakeDestination))
    return next((f"destination {name} is a lake" for name in lakes), "")
