"""Explode: make one message for each element of an array in a message."""

from typing import Any, Final

import msgspec

from dataplane.expr import json_units
from dataplane.stages.errors import StepError, kind
from dataplane.stages.paths import MISSING, Segments, get, put

MAX_CHILDREN: Final = 1_000
MAX_CHILDREN_BYTES: Final = 8 * 1024 * 1024  # of all children of one message together
MAX_CHILDREN_UNITS: Final = 250_000  # of all children of one message once decoded: 16 MB
_encode = msgspec.json.Encoder(decimal_format="number").encode


def explode(body: Any, segments: Segments, path: str) -> list[bytes]:
    """Return the children's bodies, in the order of the elements.

    In:     a decoded JSON body, owned by the caller, who must not use it afterwards.
    Out:    for each element the body with the element in the array's place; no segments: the elements themselves.
            No children for an empty array.
    Raises: StepError, if there is no array, it has more than 1 000 elements, or the children have over 8 MB together,
            or take over 16 MB once decoded (240 bytes for each object).
    Cost:   O(elements * size of the body without the array): each child is encoded, so that none shares anything.
    """
    array = get(body, segments)
    if not isinstance(array, list):
        raise StepError(path, f"explode needs an array, got {'nothing' if array is MISSING else kind(array)}")
    if len(array) > MAX_CHILDREN:
        raise StepError(path, f"explode needs at most {MAX_CHILDREN} elements, got {len(array)}")
    children, size, units = [], 0, 0
    for element in array:
        if segments:
            put(body, segments, element)
        child = _encode(body if segments else element)
        size += len(child)
        if size > MAX_CHILDREN_BYTES:
            raise StepError(path, f"explode needs children of at most {MAX_CHILDREN_BYTES} bytes together, got more")
        units += json_units(child)
        if units > MAX_CHILDREN_UNITS:
            raise StepError(path, "explode needs children with fewer objects and arrays")
        children.append(child)
    return children
