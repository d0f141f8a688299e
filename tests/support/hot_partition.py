"""Details of an alert about a hot partition, as the Observer stores them."""

from typing import Any, Final

DETAILS: Final[dict[str, Any]] = {
    "partition": 1, "share_percent": 70.0, "fair_percent": 25.0, "per_s": 700.0, "lag": 9_000,
    "keys": [{"key": "acme", "share_percent": 86.0}], "keys_unknown": "",
}  # fmt: skip
