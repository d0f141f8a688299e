"""Exceptions of sandbox jobs. Each message is a sentence for the customer that says what to do next."""


class SandboxRefused(Exception):  # noqa: N818 named for what the caller answers
    """The job was not done, and nothing was changed. `code` is stable, for programs."""

    code = "busy"


class SandboxLimit(SandboxRefused):
    """The job used more CPU time or memory than it may, and was stopped."""

    code = "too-expensive"


class SandboxBusy(SandboxRefused):
    """No worker is free at the moment."""


class TooManyAtOnce(SandboxRefused):
    """The owner has reached the limit of concurrent jobs."""

    code = "too-many-at-once"


class SandboxBrokenError(Exception):
    """A bug of ours: a worker failed in a manner that no tenant should be able to cause."""
