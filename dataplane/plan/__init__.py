"""`compile_plan(spec)`: a revision as pure functions over bodies; the same plan runs in lanes, replay and dry run."""

from dataplane.plan.compiled import Plan, SourceFields, compile_plan, source_fields
from dataplane.plan.stage import StageError

__all__ = ["Plan", "SourceFields", "StageError", "compile_plan", "source_fields"]
