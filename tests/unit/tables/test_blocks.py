"""A key is blocked from the time its first message is set aside until the last of them has ended."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dataplane.tables.blocks import BLOCK_VERSION, BlockKind, KeyBlock, KeyBlocks, block_key, decode_block, encode_block

KEY = b"crm\0customer-7"


def block(kind: BlockKind, position: int = 5, child: int = 0, of_version: int = 0, key: bytes = KEY) -> KeyBlock:
    return KeyBlock(BLOCK_VERSION, kind, "p", "crm", key, position, child, of_version)


def known(*blocks: KeyBlock) -> KeyBlocks:
    blocks_ = KeyBlocks()
    for one in blocks:
        blocks_.learn(one)
    return blocks_


def test_block_survives_the_wire_and_records_of_the_next_release_are_read():
    one = block("aside", 5, 1)
    assert decode_block(encode_block(one)) == one
    fields: list[Any] = msgspec.msgpack.decode(encode_block(one))
    assert decode_block(msgspec.msgpack.encode([*fields, "new"])) == one


def test_record_key_of_a_block_is_short_and_unique():
    keys = {block_key(block(kind, key=key)) for kind in ("aside", "ended", "held") for key in (b"a", b"b" * 9_999)}
    assert len(keys) == 6
    assert max(map(len, keys)) < 100


def test_key_is_blocked_until_its_last_message_has_ended():
    blocks = known(block("aside", 5), block("aside", 7), block("ended", 5))
    assert blocks.is_blocked("p", "crm", KEY)
    assert not blocks.is_blocked("p", "crm", b"crm\0other")
    blocks.learn(block("ended", 7))
    assert not blocks.is_blocked("p", "crm", KEY)
    assert len(blocks) == 0, "no block is kept"


def test_each_child_of_a_message_blocks_its_key():
    blocks = known(block("aside", 5, 1), block("ended", 5, 0))
    assert blocks.is_blocked("p", "crm", KEY)


@given(st.permutations([block("aside", 5), block("aside", 9), block("ended", 5), block("ended", 7)]), st.booleans())
def test_block_state_does_not_depend_on_the_order_of_records(blocks: list[KeyBlock], ends: bool):
    last = [block("ended", 9)] if ends else []
    assert known(*blocks, *last).is_blocked("p", "crm", KEY) is not ends


def test_key_is_held_until_a_newer_destination_record():
    blocks = known(block("held", of_version=4))
    assert [blocks.is_held("p", "crm", KEY, version) for version in (3, 4, 5)] == [True, True, False]


def test_newer_record_removes_the_keys_held_under_earlier_ones():
    blocks = known(*(block("held", of_version=4, key=b"%d" % number) for number in range(1_000)))
    blocks.note_version("p", "other", 9)
    blocks.note_version("p", "crm", 4)
    assert len(blocks) == 1_000
    assert blocks.is_held("p", "crm", b"7", 4)
    blocks.note_version("p", "crm", 5)
    assert len(blocks) == 0
    blocks.learn(block("held", of_version=4))
    assert len(blocks) == 0, "a record that is read after the newer version"
    blocks.learn(block("held", of_version=5))
    assert blocks.is_held("p", "crm", KEY, 5)
