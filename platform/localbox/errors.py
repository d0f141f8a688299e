"""The box's one exception, for problems that a person has to solve."""


class BoxError(Exception):
    """The box cannot continue; the text says in one sentence what is wrong and what to do."""
