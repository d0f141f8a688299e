"""Some steps in a row, compiled: what a stage makes of one message."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dataplane.expr import Allowance, compile_expr
from dataplane.spec import Explode, Filter, Map, Mask, Peek, Step
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.decoding import decode_json
from dataplane.stages.errors import StepError
from dataplane.stages.explode import explode
from dataplane.stages.paths import compile_path
from dataplane.stages.steps import About, Dropped, compile_step

_encode = msgspec.json.Encoder(decimal_format="number").encode
NOTHING_KNOWN: Final = About()
INTERNAL_ERROR: Final = "internal-error"


class StageError(Exception):
    """A message cannot pass a stage and is dead there. `cause` is short and from a closed list of kinds."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail


def internal_error(where: str, exc: Exception) -> StageError:
    """Return the cause of death of a message on which a stage failed in a way that it does not know.

    An error that escaped would end the lane, and all tenants would wait for its restart. MemoryError is none of these:
    it says something about the host, not about the message.
    """
    return StageError(INTERNAL_ERROR, f"{where}: Penstock failed on this message ({type(exc).__name__})")


def decode(body: bytes) -> Any:
    """Return the JSON value. Raises StageError `decode`."""
    try:
        return decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise StageError("decode", f"the body is not JSON: {exc}") from exc
    except MemoryError:
        raise
    except Exception as exc:
        raise internal_error("decode", exc) from exc


def encode(value: Any, where: str) -> bytes:
    """Return the value as JSON. Raises StageError `encode`."""
    try:
        return _encode(value)
    except (RecursionError, msgspec.EncodeError, OverflowError, UnicodeEncodeError) as exc:
        raise StageError("encode", f"{where}: {exc}") from exc
    except MemoryError:
        raise
    except Exception as exc:
        raise internal_error(where, exc) from exc


class Steps:
    """Edits in a row over one decoded body."""

    def __init__(self, where: str, steps: Sequence[Step], salt: bytes = b"", first: int = 0) -> None:
        self.where, self._first, self._steps = where, first, steps
        self._edits = [compile_step(step, salt) for step in steps]

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self._edits)

    @property
    def is_idle(self) -> bool:
        """Whether there are none."""
        return not self._edits

    @property
    def peeks(self) -> bool:
        """Whether a step shows messages."""
        return any(isinstance(step, Peek) for step in self._steps)

    def __call__(self, value: Any, about: About = NOTHING_KNOWN) -> Any:
        """The value after all of them, or DROPPED. Raises StageError `step`, naming step, path and cause."""
        number, allowance = 0, Allowance()
        try:
            for number, edit in enumerate(self._edits):  # noqa: B007 (named in the error below)
                value = edit(value, about, allowance)
                if type(value) is Dropped:
                    return value
        except StepError as exc:
            raise StageError("step", f"{self.where}[{self._first + number}] {self._op(number)} {exc}") from exc
        except RecursionError as exc:
            raise StageError("encode", f"{self.where}: nested too deep") from exc
        except MemoryError:
            raise
        except Exception as exc:
            raise internal_error(f"{self.where}[{self._first + number}] {self._op(number)}", exc) from exc
        return value

    def _op(self, number: int) -> str:
        return type(self._steps[number]).__name__.lower()


class Stage:
    """The steps of one stage. Without steps the bytes pass untouched, whatever they are.

    before, after: the edits on both sides of an explode; without one, all are `before`
    needs_about:   whether a step reads anything but the body
    masks:         whether a step masks something
    """

    def __init__(self, where: str, steps: Sequence[Step], salt: bytes = b"") -> None:
        end = next((number for number, step in enumerate(steps) if isinstance(step, Explode)), len(steps))
        self.where = where
        self.before = Steps(where, steps[:end], salt)
        self.after = Steps(where, steps[end + 1 :], salt, end + 1)
        self._exploding = next(iter(step.path for step in steps[end:] if isinstance(step, Explode)), None)
        self._at = f"{where}[{end}] explode"
        self.is_idle = not steps
        self.needs_about = any(needs_about(step) for step in steps)
        self.masks = any(isinstance(step, Mask) for step in steps)
        self.needs_salt = any(isinstance(step, Mask) and step.how == "hash" for step in steps)

    @property
    def explodes(self) -> bool:
        """Whether one message becomes many here."""
        return self._exploding is not None

    def explode(self, value: Any) -> list[bytes]:
        """The children of a message that has passed `before`. Raises StageError `step`."""
        path = self._exploding or ""
        try:
            return explode(value, compile_path(path), path)
        except StepError as exc:
            raise StageError("step", f"{self._at} {exc}") from exc
        except (RecursionError, msgspec.EncodeError) as exc:
            raise StageError("encode", f"{self._at}: {exc}") from exc
        except MemoryError:
            raise
        except Exception as exc:
            raise internal_error(self._at, exc) from exc


def needs_about(step: Step) -> bool:
    """Whether a step reads anything but the body."""
    match step:
        case Peek():
            return True
        case Filter(when):
            return "meta" in compile_expr(when, EXPRESSION_ROOTS).uses
        case Map(_, expr):
            return "meta" in compile_expr(expr, EXPRESSION_ROOTS).uses
    return False
