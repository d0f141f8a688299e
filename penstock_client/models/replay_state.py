from enum import StrEnum


class ReplayState(StrEnum):
    ABORTED = "aborted"
    ABORTING = "aborting"
    DONE = "done"
    FAILED = "failed"
    PAUSED = "paused"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
