"""The one error of the spec room."""


class SpecError(Exception):
    """The spec cannot run. `path` names the field (`$.normalize[0].op`), `reason` what was needed and what came."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
