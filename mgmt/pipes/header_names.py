"""Names of request headers that settings of a source may name."""

import re
from typing import Final

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SECRET: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


def names_a_header_without_secrets(name: str) -> bool:
    """Return True for the lower-case name of a header whose value may be stored and shown."""
    return _NAME.fullmatch(name) is not None and name not in _SECRET
