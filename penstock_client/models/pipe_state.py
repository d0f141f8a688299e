from enum import StrEnum


class PipeState(StrEnum):
    ACTIVE = "active"
    CLOSED = "closed"
    PAUSED = "paused"

    def __str__(self) -> str:
        return str(self.value)
