"""Names of the metrics that a process serves."""

import re
import urllib.request


def served_metrics(port: int) -> set[str]:
    """Return the names at a port of this machine. Raises OSError if nothing answers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return set(re.findall(r"^# TYPE (\S+) ", answer.read().decode(), re.MULTILINE)) - {"python_info"}
