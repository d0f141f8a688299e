from enum import StrEnum


class RevisionState(StrEnum):
    FAILED = "failed"
    LIVE = "live"
    RAMPING = "ramping"
    REQUESTED = "requested"
    RETIRED = "retired"

    def __str__(self) -> str:
        return str(self.value)
