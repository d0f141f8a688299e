from enum import StrEnum


class ResultOutOutcomeEnum(StrEnum):
    DEAD = "dead"
    FILTERED = "filtered"
    PASSED = "passed"

    def __str__(self) -> str:
        return str(self.value)
