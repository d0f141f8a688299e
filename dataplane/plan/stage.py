"""Compiled steps of one stage, applied to one message."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dataplane.causes import Cause
from dataplane.expr import CostAllowance, compile_expr
from dataplane.spec import ExplodeStep, FilterStep, MapStep, MaskStep, PeekStepSpec, Step
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.spec.steps import keeps_body
from dataplane.stages.decoding import decode_json
from dataplane.stages.errors import StepError
from dataplane.stages.explode import explode
from dataplane.stages.paths import compile_path
from dataplane.stages.steps import Dropped, StepContext, compile_step

_encode = msgspec.json.Encoder(decimal_format="number").encode
EMPTY_CONTEXT: Final = StepContext()


class StageError(Exception):
    """A message fails at a stage and is dead-lettered there. It has a cause and a detail."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail


def internal_error(where: str, exc: Exception) -> StageError:
    """Return the StageError `internal-error` for an unexpected exception at a message.

    An exception that escaped would crash the lane, and all tenants would wait for its restart. A MemoryError is raised
    again: its reason is the host, not the message.
    """
    if isinstance(exc, MemoryError):
        raise exc
    return StageError(Cause.INTERNAL_ERROR, f"{where}: internal error of Penstock ({type(exc).__name__})")


def decode(body: bytes) -> Any:
    """Return the JSON value of a body. Raises StageError `decode` if it is not JSON."""
    try:
        return decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise StageError(Cause.DECODE, f"the body is not JSON: {exc}") from exc
    except Exception as exc:
        raise internal_error("decode", exc) from exc


def encode(value: Any, where: str) -> bytes:
    """Return the value as JSON. Raises StageError `encode`, with `where`, if JSON cannot represent it."""
    try:
        return _encode(value)
    except (RecursionError, msgspec.EncodeError, OverflowError, UnicodeEncodeError) as exc:
        raise StageError(Cause.ENCODE, f"{where}: {exc}") from exc
    except Exception as exc:
        raise internal_error(where, exc) from exc


class CompiledSteps:
    """Sequence of steps over one decoded body.

    keeps_body: True if no step changes the body, so that its original bytes are passed on
    """

    def __init__(self, where: str, steps: Sequence[Step], salt: bytes = b"", first: int = 0) -> None:
        self.where, self._first, self._steps = where, first, steps
        self._edits = [compile_step(step, salt) for step in steps]
        self.keeps_body = all(map(keeps_body, steps))

    @property
    def parts(self) -> int:
        """Return the number of steps."""
        return len(self._edits)

    @property
    def is_idle(self) -> bool:
        """Return True if there are no steps."""
        return not self._edits

    @property
    def peeks(self) -> bool:
        """Return True if a step is a peek."""
        return any(isinstance(step, PeekStepSpec) for step in self._steps)

    def __call__(self, value: Any, about: StepContext = EMPTY_CONTEXT) -> Any:
        """Return the value after all steps, or DROPPED. Raises StageError `step`, with step, path and cause."""
        number, allowance = 0, CostAllowance()
        try:
            for number, edit in enumerate(self._edits):  # noqa: B007 (named in the error below)
                value = edit(value, about, allowance)
                if type(value) is Dropped:
                    return value
        except StepError as exc:
            raise StageError(Cause.STEP, f"{self.where}[{self._first + number}] {self._op(number)} {exc}") from exc
        except RecursionError as exc:
            raise StageError(Cause.ENCODE, f"{self.where}: nested too deeply") from exc
        except Exception as exc:
            raise internal_error(f"{self.where}[{self._first + number}] {self._op(number)}", exc) from exc
        return value

    def _op(self, number: int) -> str:
        return str(self._steps[number].__struct_config__.tag)


class CompiledStage:
    """The steps of one stage. Without steps the bytes pass unchanged, even if they are not JSON.

    before, after: the steps before and after an explode; without one, all are in `before`
    needs_about:   True if a step reads anything besides the body
    masks:         True if a step masks a value
    needs_salt:    True if a step hashes a value
    """

    def __init__(self, where: str, steps: Sequence[Step], salt: bytes = b"") -> None:
        end = next((number for number, step in enumerate(steps) if isinstance(step, ExplodeStep)), len(steps))
        self.where = where
        self.before = CompiledSteps(where, steps[:end], salt)
        self.after = CompiledSteps(where, steps[end + 1 :], salt, end + 1)
        self._exploding = next(iter(step.path for step in steps[end:] if isinstance(step, ExplodeStep)), None)
        self._at = f"{where}[{end}] explode"
        self.is_idle = not steps
        self.needs_about = any(needs_about(step) for step in steps)
        self.masks = any(isinstance(step, MaskStep) for step in steps)
        self.needs_salt = any(isinstance(step, MaskStep) and step.how == "hash" for step in steps)

    @property
    def explodes(self) -> bool:
        """Return True if one of the steps is an explode."""
        return self._exploding is not None

    def explode(self, value: Any) -> list[bytes]:
        """Return the children of a message that has passed `before`, as JSON. Raises StageError `step`, `encode`."""
        path = self._exploding or ""
        try:
            return explode(value, compile_path(path), path)
        except StepError as exc:
            raise StageError(Cause.STEP, f"{self._at} {exc}") from exc
        except (RecursionError, msgspec.EncodeError) as exc:
            raise StageError(Cause.ENCODE, f"{self._at}: {exc}") from exc
        except Exception as exc:
            raise internal_error(self._at, exc) from exc


def needs_about(step: Step) -> bool:
    """Return True if a step reads anything besides the body."""
    match step:
        case PeekStepSpec():
            return True
        case FilterStep(when):
            return "meta" in compile_expr(when, EXPRESSION_ROOTS).uses
        case MapStep(_, expr):
            return "meta" in compile_expr(expr, EXPRESSION_ROOTS).uses
    return False
