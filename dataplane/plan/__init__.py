"""Compiled revisions: pure functions over message bodies. Lanes, replay and dry run execute the same plan."""

from dataplane.plan.compiled import CompiledPlan, SourceFields, compile_plan, source_fields
from dataplane.plan.stage import StageError

__all__ = ["CompiledPlan", "SourceFields", "StageError", "compile_plan", "source_fields"]
