"""Compiled enrich stage: a sequence of look-ups over one decoded body."""

from collections.abc import Sequence
from typing import Any

from dataplane.causes import Cause
from dataplane.expr import CostAllowance
from dataplane.plan.stage import EMPTY_CONTEXT, StageError, internal_error
from dataplane.spec import EnrichSpec
from dataplane.stages.enrich import RowNotFoundError, TableNotFoundError, TableRows, compile_enrich
from dataplane.stages.errors import StepError
from dataplane.stages.steps import StepContext


class CompiledEnrich:
    """All look-ups of a spec. `tables`: their tables' names; `needs_about`: True if a key reads more than the body."""

    def __init__(self, steps: Sequence[EnrichSpec]) -> None:
        compiled = [compile_enrich(step) for step in steps]
        self._joins = [join for join, _ in compiled]
        self._tables = [step.table for step in steps]
        self.tables = frozenset(self._tables)
        self.needs_about = any(reads_meta for _, reads_meta in compiled)

    @property
    def parts(self) -> int:
        """Return the number of look-ups."""
        return len(self._joins)

    @property
    def is_idle(self) -> bool:
        """Return True if there are no look-ups."""
        return not self._joins

    def __call__(self, value: Any, rows: TableRows, about: StepContext = EMPTY_CONTEXT) -> Any:
        """Return the value with its rows added. Raises StageError `lookup`, `no-row` or `no-table`."""
        number, allowance = 0, CostAllowance()
        try:
            for number, join in enumerate(self._joins):  # noqa: B007 (named in the error below)
                value = join(value, about.meta, rows, allowance)
        except StepError as exc:
            raise StageError(Cause.LOOKUP, f"enrich[{number}] {self._tables[number]} {exc}") from exc
        except RowNotFoundError as exc:
            raise StageError(Cause.NO_ROW, f"enrich[{number}] {exc}") from exc
        except TableNotFoundError as exc:
            raise StageError(
                Cause.NO_TABLE,
                f"enrich[{number}] {self._tables[number]}: the look-up table does not exist or was removed",
            ) from exc
        except Exception as exc:
            raise internal_error(f"enrich[{number}] {self._tables[number]}", exc) from exc
        return value
