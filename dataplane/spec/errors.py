"""The error of dataplane.spec."""


class SpecError(Exception):
    """The spec cannot run. `path`: the field (`$.normalize[0].op`); `reason`: what it needs and what it has."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
