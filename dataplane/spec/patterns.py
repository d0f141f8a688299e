"""Checks the patterns of a spec when it is saved."""

from dataplane.expr.patterns import compile_pattern
from dataplane.spec.errors import SpecError


def check_pattern(path: str, pattern: str) -> None:
    """Raises SpecError, naming the field, if RE2 does not take the pattern."""
    try:
        compile_pattern(pattern)
    except ValueError as exc:
        raise SpecError(path, f"needs an RE2 pattern, got one it refuses: {exc}") from exc
