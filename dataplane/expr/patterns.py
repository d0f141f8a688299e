"""Regular expressions of tenants, run by RE2, which is linear in the text: no pattern can block a lane."""

from typing import Any, Final

import re2

MAX_PROGRAM_BYTES: Final = 1 << 20  # of RE2's compiled form; a{1000}{1000} is refused instead of compiled


def compile_pattern(pattern: str) -> Any:
    """Return the pattern, ready to `search`. Raises ValueError if RE2 does not accept it."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PROGRAM_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as exc:
        reason = exc.args[0] if exc.args else "not accepted"
        raise ValueError(reason.decode() if isinstance(reason, bytes) else str(reason)) from exc
