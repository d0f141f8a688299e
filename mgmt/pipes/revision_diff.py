"""Changes between two revisions of a pipe, line by line. Pure."""

from mgmt.models import PipeRevision
from mgmt.pipes.editor.diff import DiffLine, changed_lines
from mgmt.pipes.editor.draft import readable


def revision_diff(old: PipeRevision | None, new: PipeRevision) -> list[DiffLine]:
    """Return the lines of both specs in reading order, each marked; all lines of `new` are new if there is no `old`."""
    before = readable(old.spec).splitlines() if old else []
    return changed_lines(before, readable(new.spec).splitlines())
