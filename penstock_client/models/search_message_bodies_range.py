from enum import StrEnum


class SearchMessageBodiesRange(StrEnum):
    VALUE_0 = "15m"
    VALUE_1 = "1h"
    VALUE_2 = "24h"
    VALUE_3 = "6h"

    def __str__(self) -> str:
        return str(self.value)
