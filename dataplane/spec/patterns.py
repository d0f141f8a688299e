"""Checks the patterns of a spec when it is saved."""

from dataplane.expr.patterns import compile_pattern
from dataplane.spec.errors import SpecError


def check_pattern(path: str, pattern: str) -> int:
    """Return how many instructions the pattern's program has. Raises SpecError if RE2 does not take the pattern."""
    try:
        return int(compile_pattern(pattern).programsize)
    except ValueError as exc:
        raise SpecError(path, f"needs an RE2 pattern, got one it refuses: {exc}") from exc
