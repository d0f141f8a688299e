"""Why a sandbox job has no answer. Each message is a sentence for the customer that says what to do next."""


class SandboxRefused(Exception):  # noqa: N818 named for what the caller answers
    """The job was not done, and nothing was changed. `code` is stable, for programs."""

    code = "busy"


class SandboxLimit(SandboxRefused):
    """The job used more CPU time or memory than it may, and was stopped."""

    code = "too-expensive"


class SandboxBusy(SandboxRefused):
    """There is no worker to be had at the moment."""


class TooManyAtOnce(SandboxRefused):
    """The owner has as many jobs under way as one may have."""

    code = "too-many-at-once"


class SandboxBrokenError(Exception):
    """Our own fault: a worker failed in a way that no tenant should be able to cause."""
