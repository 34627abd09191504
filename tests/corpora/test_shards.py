"""Files become shards, and shards lines, in order."""

import gzip
import json
import re
from dataclasses import asdict

import pytest

from keras_transformer.corpora.shards import Shard, ShardReader, counted, files_of, split


def test_the_files_of_folders_come_by_name_without_notes(tmp_path):
    for name in ("b.txt", "a.txt", ".hidden", "_SUCCESS", "a.json"):
        (tmp_path / name).write_text("one\n")
    inside = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    assert files_of(tmp_path, "inputs") == inside
    assert files_of([tmp_path / "b.txt", tmp_path], "inputs") == [inside[1], *inside]
    (tmp_path / "empty").mkdir()
    for bad, error in [(tmp_path / "empty", ValueError), ([], ValueError), ("no", OSError)]:
        with pytest.raises(error, match="inputs"):
            files_of(bad, "inputs")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_shards_hold_each_line_once_and_in_order(tmp_path, pack):
    texts = {"a": [f"a{i}" for i in range(7)], "b": [], "c": ["c0", "c1"]}
    paths = [str(tmp_path / (name + (".gz" if pack is not bytes else ""))) for name in texts]
    for path, lines in zip(paths, texts.values(), strict=True):
        with open(path, "wb") as file:
            file.write(pack("".join(f"{line}\n" for line in lines).encode()))
    inputs = [counted(path, ("text",), 3) for path in paths]
    assert [one.lines for one in inputs] == [7, 0, 2]
    shards = list(split([inputs], 3))
    assert [shard.lines for shard in shards] == [3, 3, 1, 2]
    assert [shard.number for shard in shards] == [0, 1, 2, 3]
    reader = ShardReader()
    found = [text for shard in shards for (text,) in reader.records(shard)]
    assert found == [*texts["a"], *texts["c"]]
    assert [text for (text,) in reader.records(shards[0])] == ["a0", "a1", "a2"]  # and back
    assert Shard.of(json.loads(json.dumps(asdict(shards[1])))) == shards[1]
    assert str(shards[1]) == f"shard-00000001 (lines 4 to 6 of {paths[0]})"


def test_parallel_files_must_be_as_long_as_each_other(tmp_path):
    for name, count in dict(a=5, b=5, c=4).items():
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(count)))
    a, b, c = (counted(str(tmp_path / name), ("text",), 2) for name in "abc")
    shards = list(split([[a], [b]], 2))
    assert ShardReader().records(shards[2]) == [("a4", "b4")]
    with pytest.raises(ValueError, match=re.escape("a has 5, ") + ".*c has 4"):
        list(split([[a], [c]], 2))


def test_a_file_that_became_shorter_is_told(tmp_path):
    path = tmp_path / "a"
    path.write_text("one\ntwo\n")
    (shard,) = split([[counted(str(path), ("text",), 5)]], 5)
    path.write_text("one\n")
    with pytest.raises(ValueError, match="a has changed"):
        ShardReader().records(shard)
