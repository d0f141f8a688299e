"""Benchmark report: median and spread of alternating runs, and the target met or missed, as text and JSON."""

import json
import os
import platform
import statistics
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, to_builtins

RUNS = 5


class Line(Struct):
    """One measurement. `ratio` is against the baseline of the same run; `need` is the design's target."""

    name: str
    unit: str
    values: list[float]
    baseline: list[float] = []
    need: str = ""
    met: bool | None = None

    @property
    def median(self) -> float:
        """Median of the runs."""
        return statistics.median(self.values)

    @property
    def ratio(self) -> float | None:
        """Median of the run-by-run ratios."""
        if not self.baseline:
            return None
        return statistics.median(value / base for value, base in zip(self.values, self.baseline, strict=True))


def alternate(
    measure: Callable[[], float], baseline: Callable[[], float], runs: int = RUNS
) -> tuple[list[float], list[float]]:
    """Run both alternately, so that a noisy minute affects both."""
    values, bases = [], []
    for _ in range(runs):
        bases.append(baseline())
        values.append(measure())
    return values, bases


def show(line: Line) -> str:
    """Format a measurement as one line of text."""
    spread = f"{min(line.values):,.1f} .. {max(line.values):,.1f}"
    parts = [f"{line.name:<44} {line.median:>10,.1f} {line.unit:<10} ({spread})"]
    if line.ratio is not None:
        parts.append(f"{line.ratio:6.1%} of baseline {statistics.median(line.baseline):,.0f}")
    if line.need:
        parts.append(f"need {line.need}: {'met' if line.met else 'MISSED'}")
    return "  ".join(parts)


def write(lines: list[Line], folder: Path) -> Path:
    """Write all measurements and the machine as JSON; return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bench.json"
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    rows = [to_builtins(line) | {"median": line.median, "ratio": line.ratio} for line in lines]
    path.write_text(json.dumps({"machine": machine, "lines": rows}, indent=1))
    return path
