"""An output folder belongs to one job; errors name what differs."""

import json
import os
import re

import pytest

from keras_transformer.corpora.manifest import fingerprint, planned

FACTS = dict(method="translate", beam_size=4)


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\nthree\n")

    def call(facts=FACTS, names=("a",), fields=("text",), shard_lines=2):
        sides = [([str(tmp_path / name) for name in names], fields)]
        return planned(tmp_path / "out", facts, sides, shard_lines)

    return call


def test_a_job_is_known_again_and_its_inputs_may_move(plan, tmp_path):
    [[first]] = plan()
    assert first.lines == 3 and first.offsets == (0, 8)
    assert plan() == [[first]]
    os.rename(tmp_path / "a", tmp_path / "b")
    os.utime(tmp_path / "b", (1, 1))  # the hash tells that it is the same file
    [[moved]] = plan(names=("b",))
    assert moved.path == str(tmp_path / "b") and moved.offsets == first.offsets


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(facts={**FACTS, "beam_size": 5}), "beam_size is 4 there and 5 here"),
        (dict(shard_lines=3), "shard_lines is 2 there and 3 here"),
        (dict(fields=("words",)), "fields are ['text'] there and ['words'] here"),
        (dict(names=("a", "a")), "the numbers of inputs are [1] there and [2] here"),
    ],
)
def test_another_job_is_refused(plan, tmp_path, changes, message):
    plan()
    with pytest.raises(ValueError, match=f"out belongs to another job: {re.escape(message)}"):
        plan(**changes)


def test_another_input_is_refused(plan, tmp_path):
    plan()
    for text in ("one\ntwo\nTHREE\n", "one\n"):
        (tmp_path / "a").write_text(text)
        os.utime(tmp_path / "a", (1, 1))
        with pytest.raises(ValueError, match="a is not the input .*a that was read"):
            plan()


def test_a_folder_of_other_files_is_refused(plan, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    with pytest.raises(ValueError, match="out holds files and no manifest.json"):
        plan()


def test_a_bad_line_leaves_no_manifest(plan, tmp_path):
    (tmp_path / "a").write_bytes(b"one\n\xff\n")
    with pytest.raises(ValueError, match="a, line 2: invalid UTF-8"):
        plan()
    assert not (tmp_path / "out").exists()


def test_a_fingerprint_is_of_the_files_of_the_model(tmp_path):
    with pytest.raises(ValueError, match=r"is not a saved model: it has no config.json"):
        fingerprint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.keras").write_text("model")
    first = fingerprint(tmp_path)
    (tmp_path / "metrics.json").write_text("{}")
    assert fingerprint(tmp_path) == first
    (tmp_path / "model.keras").write_text("other")
    assert fingerprint(tmp_path) != first


def test_a_fingerprint_of_an_adapter_is_also_of_its_base(tmp_path):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    for folder, config, weights in (
        (base, {}, "model.keras"),
        (adapter, {"adapter": {"base": "../base"}}, "adapter.safetensors"),
    ):
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        (folder / weights).write_text(weights)
    first = fingerprint(adapter)
    (adapter / "adapter.safetensors").write_text("other")
    second = fingerprint(adapter)
    (base / "model.keras").write_text("other")
    assert len({first, second, fingerprint(adapter)}) == 3
    (base / "model.keras").unlink()  # a base in Hugging Face's layout
    assert fingerprint(adapter) not in (first, second)
