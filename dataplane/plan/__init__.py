"""`compile_plan(spec)`: a revision as pure functions over bodies; the same plan runs in lanes, replay and dry run."""

from dataplane.plan.compiled import Plan, compile_plan
from dataplane.plan.stage import StageError

__all__ = ["Plan", "StageError", "compile_plan"]
