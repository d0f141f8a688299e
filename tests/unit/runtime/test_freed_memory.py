"""Freed memory is returned to the operating system: measured in this process."""

from dataplane.runtime.freed_memory import EVERY_S, FreedMemory, private_bytes

BLOCKS = 20_000
BLOCK_BYTES = 2_000  # above the sizes that Python keeps in arenas of its own
MB = 1_000_000


def test_memory_of_a_past_backlog_is_returned_once_a_minute_and_not_while_there_is_little_of_it():
    memory = FreedMemory()
    assert memory.give_back(0.0)
    backlog = [bytes(BLOCK_BYTES) for _ in range(BLOCKS)]
    rest = backlog[::50]  # the C library keeps the pages between these
    del backlog
    peak = private_bytes()
    assert not memory.give_back(EVERY_S - 1)
    assert private_bytes() > peak - 5 * MB, "nothing else returns it"
    assert memory.give_back(EVERY_S)
    assert private_bytes() < peak - 25 * MB
    assert not memory.give_back(2 * EVERY_S)
    assert len(rest) == BLOCKS / 50
