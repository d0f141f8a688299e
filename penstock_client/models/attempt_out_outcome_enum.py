from enum import StrEnum


class AttemptOutOutcomeEnum(StrEnum):
    CANCELLED = "cancelled"
    DEAD = "dead"
    DELIVERED = "delivered"
    PARKED = "parked"
    RETRY = "retry"

    def __str__(self) -> str:
        return str(self.value)
