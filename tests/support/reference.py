"""Speed of the machine now, against the one that bounds and schedules are written for."""

import time
from typing import Final

import msgspec

REFERENCE_S: Final = 0.006
_DOCUMENT: Final = b"[" + b'{"a":[1,"xy",{}]},' * 6_000 + b"1]"


def reference_s() -> float:
    """Return the CPU time of some decoding and looping: REFERENCE_S on that machine when it is idle."""
    began = time.thread_time()
    for one in msgspec.json.decode(_DOCUMENT):
        repr(one)
    return time.thread_time() - began
