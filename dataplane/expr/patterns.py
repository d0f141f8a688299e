"""Patterns that tenants write, run by an engine that is linear in the text: no pattern can make a lane stand still."""

from typing import Any, Final

import re2

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
