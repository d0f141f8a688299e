"""Whether a pipe can be moved to another cell as it is now. Pure."""

from collections.abc import Mapping

from dataplane.spec import Destination, LakeDestination, PipeSpec


def why_not_movable(specs: Mapping[int, PipeSpec], destinations: Mapping[str, Destination]) -> str:
    """Why a pipe with these revisions in use (by number) and destinations cannot be moved; "" if it can.

    A cell's queries keep a memory that does not travel.
    """
    for number, spec in specs.items():
        if spec.dedup is not None:
            return f"revision {number} has dedup, whose memory of identities stays in the cell"
        if spec.windows:
            return f"revision {number} has windows, whose open panes stay in the cell"
    for name, to in destinations.items():
        if isinstance(to, LakeDestination):
            return f"destination {name} is a lake, whose writer works off one cell"
    return ""
