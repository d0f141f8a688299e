"""Signals on the wire: round trips, and records of the previous and the next release."""

from typing import Any

import msgspec

from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, decode_signal, encode_signal, signal_key

SIGNAL = DestinationSignal(
    SIGNAL_VERSION, "c1", "transmit-0", "p", "crm", 5, "open", 9, 4, True, "storm", 400, "rejected", 20
)


def test_signal_survives_the_wire():
    assert decode_signal(encode_signal(SIGNAL)) == SIGNAL
    assert signal_key(SIGNAL) == "p/crm/transmit-0"


def test_signals_of_other_releases_are_read():
    fields: list[Any] = msgspec.msgpack.decode(encode_signal(SIGNAL))
    assert decode_signal(msgspec.msgpack.encode([*fields, "new"])) == SIGNAL
    oldest = decode_signal(msgspec.msgpack.encode(fields[:6]))
    assert (oldest.breaker, oldest.in_a_row) == ("closed", 0)
