from enum import StrEnum


class DestinationState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    REMOVED = "removed"
    SUSPENDED = "suspended"

    def __str__(self) -> str:
        return str(self.value)
