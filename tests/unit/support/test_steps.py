"""The list of a lane's steps grows automatically with its code."""

from pathlib import Path

from dataplane.names import LANE_KINDS
from tests.support.crash_elsewhere import ELSEWHERE
from tests.support.steps import steps_in, steps_of

CODE = '''\
"""A room."""

class Work:
    def take(self, messages):
        """Docs are no step."""
        for message in messages:
            self._store(message)
            size = len(message)
            self.lane.producer.send("topic", size)
        if self._over():
            return self.ends
        return self.ends.finish(size)
'''


def found(code: str) -> list[tuple[str, str]]:
    return [(step.function, step.call) for step in steps_in(code, Path("room.py"))]


def test_step_is_a_statement_that_calls_code_of_the_lane():
    assert found(CODE) == [
        ("Work.take", "self._store"),
        ("Work.take", "self.lane.producer.send"),
        ("Work.take", "self.ends.finish"),
    ]


def test_new_statement_is_a_new_step():
    more = CODE.replace("size = len(message)", "size = self._measure(message)")
    assert set(found(more)) - set(found(CODE)) == {("Work.take", "self._measure")}


def test_pure_module_has_no_steps():
    assert found(CODE.replace("A room.", "A room. Pure: time is an argument.")) == []


def test_every_kind_of_lane_has_over_a_hundred_steps():
    assert all(len(steps_of(kind)) > 100 for kind in LANE_KINDS)


def test_steps_that_the_campaign_excludes_still_exist():
    names = {name for kind in LANE_KINDS for step in steps_of(kind) for name in (step.function, step.name)}
    assert not ELSEWHERE.keys() - names, "renamed or gone: update tests/support/crash_elsewhere.py"
