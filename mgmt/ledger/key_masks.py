"""Hide keys that a pipe masks, wherever Penstock shows a key outside of a message. Pure."""

from typing import Final

from dataplane.spec import ExplodeStep, MapStep, MaskStep, PipeSpec, RenameStep, paths_overlap
from dataplane.stages.masks import masker

_MOVING: Final = (RenameStep, MapStep, ExplodeStep)  # steps after which a value may be at another path


def shown_key(key: str, spec: PipeSpec) -> str:
    """Return the key as it may be shown: masked if a step of the pipe masks the value that it comes from.

    A hash is shown as `***`, because the tenant's salt is not read for this. Any mask hides keys whose path cannot be
    compared with the mask's: those of a Kafka source's records, and those of a pipe that moves values.
    """
    steps = [step for part in (spec.normalize, *spec.transform.values()) for step in part]
    is_moving = any(isinstance(step, _MOVING) for step in steps)
    masks = [step for step in steps if isinstance(step, MaskStep)]
    hows = {mask.how for mask in masks if is_moving or _is_of_a_key(mask, spec)}
    if not hows:
        return key
    return masker("partial" if hows == {"partial"} else "redact", b"")(key)


def _is_of_a_key(mask: MaskStep, spec: PipeSpec) -> bool:
    paths = [source.key for source in spec.sources.values()]
    return any(path is None or paths_overlap(mask.path, path) for path in paths)
