"""A key is blocked from the moment its first message goes aside until the last one of them has ended."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dataplane.tables.blocks import BLOCK_VERSION, Block, BlockKind, Blocks, block_key, decode_block, encode_block

KEY = b"crm\0customer-7"


def block(kind: BlockKind, position: int = 5, child: int = 0, of_version: int = 0, key: bytes = KEY) -> Block:
    return Block(BLOCK_VERSION, kind, "p", "crm", key, position, child, of_version)


def known(*blocks: Block) -> Blocks:
    blocks_ = Blocks()
    for one in blocks:
        blocks_.learn(one)
    return blocks_


def test_a_block_survives_the_wire_and_records_of_the_next_release_are_read():
    one = block("aside", 5, 1)
    assert decode_block(encode_block(one)) == one
    fields: list[Any] = msgspec.msgpack.decode(encode_block(one))
    assert decode_block(msgspec.msgpack.encode([*fields, "new"])) == one


def test_its_key_in_the_topic_is_short_and_its_own():
    keys = {block_key(block(kind, key=key)) for kind in ("aside", "ended", "held") for key in (b"a", b"b" * 9_999)}
    assert len(keys) == 6
    assert max(map(len, keys)) < 100


def test_a_key_is_blocked_until_the_last_one_has_ended():
    blocks = known(block("aside", 5), block("aside", 7), block("ended", 5))
    assert blocks.is_blocked("p", "crm", KEY)
    assert not blocks.is_blocked("p", "crm", b"crm\0other")
    blocks.learn(block("ended", 7))
    assert not blocks.is_blocked("p", "crm", KEY)
    assert len(blocks) == 0, "forgotten"


def test_children_of_one_message_have_turns_too():
    blocks = known(block("aside", 5, 1), block("ended", 5, 0))
    assert blocks.is_blocked("p", "crm", KEY)


@given(st.permutations([block("aside", 5), block("aside", 9), block("ended", 5), block("ended", 7)]), st.booleans())
def test_in_whatever_order_it_is_told(blocks: list[Block], ends: bool):
    last = [block("ended", 9)] if ends else []
    assert known(*blocks, *last).is_blocked("p", "crm", KEY) is not ends


def test_a_key_is_held_until_a_newer_record():
    blocks = known(block("held", of_version=4))
    assert [blocks.is_held("p", "crm", KEY, version) for version in (3, 4, 5)] == [True, True, False]
