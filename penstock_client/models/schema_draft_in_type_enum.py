from enum import StrEnum


class SchemaDraftInTypeEnum(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"

    def __str__(self) -> str:
        return str(self.value)
