"""Change of a query's state partitions: a kill at any moment leaves the old checkpoint or the new one."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from dataplane.jobs import rescaling
from dataplane.jobs.rescaling import PARTITIONS, finish_replacement, rescale, state_partitions
from dataplane.runtime.settings import settings_from


def checkpoint(path: Path, *partitions: int, complete: int | None = None) -> Path:
    """Write a checkpoint with a batch for each number, of which so many are complete: all by default."""
    for name in ("offsets", "commits", "state"):
        (path / name).mkdir(parents=True)
    for batch, number in enumerate(partitions):
        conf = {"batchWatermarkMs": 0, "conf": {PARTITIONS: str(number)}}
        (path / "offsets" / str(batch)).write_text(f"v1\n{json.dumps(conf)}\n" + '{"topic":{"0":7}}')
        (path / "offsets" / f".{batch}.crc").write_bytes(b"crc")
    for batch in range(len(partitions) if complete is None else complete):
        (path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return path


@pytest.mark.parametrize(
    ("partitions", "complete", "known"),
    [
        pytest.param([], 0, None, id="no batch"),
        pytest.param([2], 0, None, id="no complete batch: there is no state to redistribute"),
        pytest.param([2, 2], 1, 2, id="an unfinished batch"),
        pytest.param([2] * 11 + [4], None, 4, id="the newest of more than ten batches"),
    ],
)
def test_partitions_of_the_state_are_those_of_the_newest_batch(
    tmp_path: Path, partitions: list[int], complete: int | None, known: int | None
):
    assert state_partitions(checkpoint(tmp_path / "dedup.g1", *partitions, complete=complete)) == known


def test_query_without_a_checkpoint_has_no_partitions(tmp_path: Path):
    finish_replacement(tmp_path / "dedup.g1")
    assert state_partitions(tmp_path / "dedup.g1") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("left", "partitions"),
    [
        pytest.param({"dedup.g1": 1}, 1, id="nothing was begun"),
        pytest.param({"dedup.g1": 1, "dedup.g1.rescaling": 4}, 1, id="killed while the copy was redistributed"),
        pytest.param({"dedup.g1": 1, "dedup.g1.rescaled": 4}, 1, id="killed before the old one was put aside"),
        pytest.param({"dedup.g1.replaced": 1, "dedup.g1.rescaled": 4}, 4, id="killed between the two renames"),
        pytest.param({"dedup.g1": 4, "dedup.g1.replaced": 1}, 4, id="killed before the old one was removed"),
    ],
)
def test_killed_replacement_leaves_one_checkpoint(tmp_path: Path, left: dict[str, int], partitions: int):
    for name, number in left.items():
        checkpoint(tmp_path / name, number)
    finish_replacement(tmp_path / "dedup.g1")
    assert state_partitions(tmp_path / "dedup.g1") == partitions
    assert [path.name for path in tmp_path.iterdir()] == ["dedup.g1"]


SPARK: Any = SimpleNamespace(
    _jsparkSession=SimpleNamespace(streams=lambda: None, streamingCheckpointManager=lambda: None)
)


@pytest.mark.parametrize("error", [PySparkException("no state"), OSError("disk full"), KeyError("x"), ValueError("x")])
def test_failed_rescaling_removes_its_copy_and_keeps_the_checkpoint(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[bool] = []

    class Manager:
        def __init__(self, _java: Any) -> None: ...

        def repartition(self, copy: str, _partitions: int, **_: Any) -> None:
            seen.append(Path(copy).exists())
            raise error

    monkeypatch.setattr(rescaling, "StreamingCheckpointManager", Manager)
    path = checkpoint(tmp_path / "dedup.g1", 1)
    assert rescale(SPARK, path, 4).startswith(type(error).__name__)
    assert (seen, state_partitions(path)) == ([True], 1)
    assert [one.name for one in tmp_path.iterdir()] == ["dedup.g1"]


def test_checkpoint_that_cannot_be_put_aside_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Manager:
        def __init__(self, _java: Any) -> None: ...

        def repartition(self, copy: str, partitions: int, **_: Any) -> None:
            shutil.rmtree(copy)
            checkpoint(Path(copy), partitions)
            (tmp_path / "dedup.g1.replaced" / "left").mkdir(parents=True)  # a directory with files is not replaced

    monkeypatch.setattr(rescaling, "StreamingCheckpointManager", Manager)
    path = checkpoint(tmp_path / "dedup.g1", 1)
    assert rescale(SPARK, path, 4).startswith("OSError")
    assert state_partitions(path) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["dedup.g1"]


@pytest.mark.parametrize("text", ["", "v1\n", "v1\n{", "v1\n{}\n{}", 'v1\n{"conf":{}}\n{}'])
def test_checkpoint_that_cannot_be_read_is_left_to_spark(text: str, tmp_path: Path):
    path = checkpoint(tmp_path / "dedup.g1", 1)
    (path / "offsets" / "0").write_text(text)
    assert rescale(SPARK, path, 4)
    assert (path / "offsets" / "0").read_text() == text


@pytest.mark.parametrize(("text", "number"), [("", 0), ("1", 1), ("2", 2), ("4", 4)])
def test_number_of_state_partitions_is_read_from_the_environment(text: str, number: int):
    assert settings_from({"PENSTOCK_STATE_PARTITIONS": text}).state_partitions == number


@pytest.mark.parametrize("text", ["3", "5", "8", "16", "-1", "two"])
def test_state_partitions_without_an_even_share_of_slots_are_refused(text: str):
    with pytest.raises(ValueError, match=r"PENSTOCK_STATE_PARTITIONS: needs 1, 2 or 4, or empty to keep them, got"):
        settings_from({"PENSTOCK_STATE_PARTITIONS": text})
