"""Check whether a pipe uses the streaming queries of its cell (dedup, windows, sequence, lake, bulk). Pure.

Most of these queries keep state that stays in the cell. They continue to work after the last message, and the offsets
of the lanes do not show how much work is left.
"""

from collections.abc import Mapping

from dataplane.plan.queries import needs_query
from dataplane.spec import DestinationSpec, LakeDestination, PipeSpec


def query_in_use(specs: Mapping[int, PipeSpec], destinations: Mapping[str, DestinationSpec]) -> str:
    """Return the part of a pipe that needs a query, in words; "" if none does. `specs`: revisions by number."""
    for number, spec in specs.items():
        if spec.dedup is not None:
            return f"revision {number} has dedup"
        if spec.windows:
            return f"revision {number} has windows"
        if needs_query("sequence", spec):
            return f"revision {number} has a sequence"
        if needs_query("bulk", spec):
            return f"revision {number} has bulk execution"
    lakes = (name for name, to in destinations.items() if isinstance(to, LakeDestination))
    return next((f"destination {name} is a lake" for name in lakes), "")
