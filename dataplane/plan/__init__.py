"""`compile_plan(spec)`: a revision as pure functions over bytes; the same plan runs in lanes, replay and dry run."""

from dataplane.plan.compiled import Plan, StageError, compile_plan

__all__ = ["Plan", "StageError", "compile_plan"]
