"""Errors of the command line: one sentence each, with an exit code that a script can rely on."""

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """Exit codes of all commands."""

    DONE = 0
    FAILED = 1
    DIFFERENT = 2
    REFUSED = 3
    UNAVAILABLE = 4
    USAGE = 64
    INTERRUPTED = 130


MEANINGS: Final = {
    ExitCode.DONE: "done; for `diff`: no difference",
    ExitCode.FAILED: "the request was refused, an event was not accepted, or a message failed in a dry run",
    ExitCode.DIFFERENT: "`diff` found a difference, or `apply` left one that it cannot resolve",
    ExitCode.REFUSED: "not signed in, the token is not valid, or its scope or your role is too low",
    ExitCode.UNAVAILABLE: "Penstock cannot be reached or is busy; the same command may succeed later",
    ExitCode.USAGE: "the command line is not valid",
    ExitCode.INTERRUPTED: "ended by Ctrl-C",
}


class CliError(Exception):
    """Failure of a command. `code`: exit code; `hint`: what to do next."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.hint = code, hint

    def __str__(self) -> str:
        text = super().__str__().rstrip(".")
        return f"{text}. {self.hint}" if self.hint else text


class ApiProblemError(CliError):
    """The API refused a request. `problem`: stable code of the problem; `status`: HTTP status."""

    def __init__(self, message: str, *, status: int, problem: str, code: ExitCode, hint: str = "") -> None:
        super().__init__(message, code, hint)
        self.status, self.problem = status, problem
