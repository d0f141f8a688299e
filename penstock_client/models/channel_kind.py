from enum import StrEnum


class ChannelKind(StrEnum):
    MAIL = "mail"
    WEBHOOK = "webhook"

    def __str__(self) -> str:
        return str(self.value)
