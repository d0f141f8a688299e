"""The enrich stage compiled: look-ups in a row over one decoded body."""

from collections.abc import Sequence
from typing import Any

from dataplane.expr import Allowance
from dataplane.plan.stage import NOTHING_KNOWN, StageError, internal_error
from dataplane.spec import Enrich
from dataplane.stages.enrich import NoRowError, Rows, TableGoneError, compile_enrich
from dataplane.stages.errors import StepError
from dataplane.stages.steps import About


class Enriching:
    """All look-ups of a spec. `tables`: the names they need; `needs_about`: whether a key reads more than the body."""

    def __init__(self, steps: Sequence[Enrich]) -> None:
        compiled = [compile_enrich(step) for step in steps]
        self._joins = [join for join, _ in compiled]
        self._tables = [step.table for step in steps]
        self.tables = frozenset(self._tables)
        self.needs_about = any(reads_meta for _, reads_meta in compiled)

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self._joins)

    @property
    def is_idle(self) -> bool:
        """Whether there are none."""
        return not self._joins

    def __call__(self, value: Any, rows: Rows, about: About = NOTHING_KNOWN) -> Any:
        """The value with its rows. Raises StageError `lookup`, `no-row` or `no-table`, naming step and table."""
        number, allowance = 0, Allowance()
        try:
            for number, join in enumerate(self._joins):  # noqa: B007 (named in the error below)
                value = join(value, about.meta, rows, allowance)
        except StepError as exc:
            raise StageError("lookup", f"enrich[{number}] {self._tables[number]} {exc}") from exc
        except NoRowError as exc:
            raise StageError("no-row", f"enrich[{number}] {exc}") from exc
        except TableGoneError as exc:
            raise StageError(
                "no-table", f"enrich[{number}] {self._tables[number]}: there is no such table, or it was removed"
            ) from exc
        except MemoryError:
            raise
        except Exception as exc:
            raise internal_error(f"enrich[{number}] {self._tables[number]}", exc) from exc
        return value
