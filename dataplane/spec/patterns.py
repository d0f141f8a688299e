"""Patterns that tenants write, run by an engine that is linear in the text: no pattern can make a lane stand still."""

from typing import Any, Final

import re2

from dataplane.spec.errors import SpecError

MAX_PROGRAM_BYTES: Final = 1 << 20  # of RE2's compiled form; a{1000}{1000} is refused instead of built


def compile_pattern(pattern: str) -> Any:
    """The pattern, ready to `search`. Raises ValueError if RE2 does not take it."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PROGRAM_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as exc:
        why = exc.args[0] if exc.args else "not taken"
        raise ValueError(why.decode() if isinstance(why, bytes) else str(why)) from exc


def check_pattern(path: str, pattern: str) -> None:
    """Raises SpecError, naming the field, if RE2 does not take the pattern."""
    try:
        compile_pattern(pattern)
    except ValueError as exc:
        raise SpecError(path, f"needs an RE2 pattern, got one it refuses: {exc}") from exc
