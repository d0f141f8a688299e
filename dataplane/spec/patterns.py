"""Checks of a spec's regular expressions when it is saved."""

from dataplane.expr.patterns import compile_pattern
from dataplane.spec.errors import SpecError


def check_pattern(path: str, pattern: str) -> int:
    """Return the number of instructions of the pattern's program. Raises SpecError if RE2 refuses the pattern."""
    try:
        return int(compile_pattern(pattern).programsize)
    except ValueError as exc:
        raise SpecError(path, f"needs an RE2 pattern: {exc}") from exc
