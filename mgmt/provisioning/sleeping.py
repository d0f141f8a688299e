"""Whether a pipe leaves its cell anything to do while nothing comes. Pure."""

from collections.abc import Mapping

from dataplane.spec import Destination, LakeDestination, PipeSpec


def why_runs_on(specs: Mapping[int, PipeSpec], destinations: Mapping[str, Destination]) -> str:
    """Why a pipe with these revisions in use (by number) and destinations needs its cell's application; "" if not.

    A query works on after the last message, and how far it is does not show in what lanes have read.
    """
    for number, spec in specs.items():
        if spec.dedup is not None:
            return f"revision {number} has dedup, whose query runs on"
        if spec.windows:
            return f"revision {number} has windows, whose query runs on"
    for name, to in destinations.items():
        if isinstance(to, LakeDestination):
            return f"destination {name} is a lake, whose writer runs on"
    return ""
