"""The one exception of the box: something a person has to do, said in one sentence."""


class BoxError(Exception):
    """The box cannot go on; the text says what is wrong and what to do about it."""
