from enum import StrEnum


class LookupTableOutStateEnum(StrEnum):
    LIVE = "live"
    PUBLISHING = "publishing"

    def __str__(self) -> str:
        return str(self.value)
