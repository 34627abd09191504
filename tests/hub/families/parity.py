"""Classes of tests that compare checkpoints, which families inherit.

The fixture `pair` of a family's file gives a random model of `transformers`, its folder, and ours
read from there; that of a decoder-only family begins with the name of the family.
"""

import json

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file, save_file

from keras_transformer.backend import BACKEND, compiled
from keras_transformer.hub.hugging_face_checkpoint import Checkpoint, read_model, write_model
from keras_transformer.language.prompts import left_padded
from keras_transformer.running.search_functions import generation_function, translation_function
from keras_transformer.search import Generation, Search
from tests.backends import sample


def edit(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


@torch.no_grad()
def fill(theirs, but=None):
    """Random weights, larger than those that a model begins with."""
    for name, weight in theirs.named_parameters():
        if but is None or not name.endswith(but):
            weight.normal_(float(weight.ndim == 1 and name.endswith("weight")), 0.3)


@torch.no_grad()
def filled(theirs):
    """Random weights; those of norms are floats of 8 bits, to which 1 can be added exactly."""
    for name, weight in theirs.named_parameters():
        weight.normal_(0, 0.3)
        if weight.ndim == 1 and name.endswith("norm.weight"):
            weight.copy_(weight.bfloat16())
            weight[weight.abs() < 2**-8] = 0
    return theirs.eval()


def configure(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


DECODER_IDS = dict(vocab_size=99, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def assert_refused(folder, message, **config):
    (folder / "config.json").write_text(json.dumps(DECODER_IDS | config))
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=message):
        read_model(folder)


@torch.no_grad()
def their_logits(theirs, ids):
    """The logits, also where rates depend on the length: a short text resets them first."""
    theirs(torch.tensor([[3]]))
    return theirs(torch.tensor(ids).long()).logits.numpy()


def until(ids, end):
    return ids[: ids.index(end)] if end in ids else ids


class DecoderOnlyParity:
    """The same logits and greedy tokens, and the same weights back."""

    def test_logits(self, pair):
        _, theirs, _, ours = pair
        ids = np.random.default_rng(0).integers(3, 99, (2, 20)).astype("int32")
        expected = their_logits(theirs, ids)
        found = ops.convert_to_numpy(ours({"token_ids": ids}))
        np.testing.assert_allclose(found, expected, atol=1e-4)
        assert np.abs(expected).max() > 1

    @pytest.mark.once("logits are equal under each here, padding is tested in tests/models")
    def test_logits_behind_padding(self, pair):
        _, theirs, _, ours = pair
        ids = np.random.default_rng(1).integers(3, 99, (2, 9)).astype("int32")
        mask = np.array([[1] * 9, [0] * 4 + [1] * 5], "int32")
        found = ops.convert_to_numpy(ours({"token_ids": ids, "segments": mask}))
        for row, start in enumerate((0, 4)):  # alone: their rates may depend on the longest row
            expected = their_logits(theirs, ids[row : row + 1, start:])[0]
            np.testing.assert_allclose(found[row, start:], expected, atol=1e-4)

    @pytest.mark.once("logits are equal under each here, steps in tests/models")
    def test_greedy_tokens(self, pair):
        """Prompts of different lengths in one batch continue as theirs do alone."""
        _, theirs, _, ours = pair
        prompts = [[5, 17, 60], [8, 9, 12, 77, 31, 45, 3, 22, 18, 50]]
        token_ids, segments = left_padded(prompts, 2, 0)
        search = Generation(max_new_tokens=10)
        limits = np.array([10, 10], "int32")
        tensors = map(ops.convert_to_tensor, (token_ids, limits, segments))
        found, _ = compiled(generation_function(search, ours), ours)(*tensors)
        for ids, row in zip(prompts, ops.convert_to_numpy(found)[:, 0].tolist(), strict=True):
            their_logits(theirs, np.array([[3]]))
            given = torch.tensor([ids])
            options = dict(attention_mask=torch.ones_like(given), do_sample=False, use_cache=False)
            expected = theirs.generate(given, max_new_tokens=10, **options)[0, len(ids) :].tolist()
            assert until(row, 2)[:10] == until(expected, 2)

    @pytest.mark.once("weights are written as arrays")
    def test_back_again_bit_for_bit(self, pair, tmp_path):
        kind, theirs, folder, ours = pair
        write_model(tmp_path, ours, kind)
        again = type(theirs).from_pretrained(tmp_path).state_dict()
        before = theirs.state_dict()
        assert again.keys() == before.keys()
        assert all(torch.equal(again[name], before[name]) for name in before)
        written = json.loads((tmp_path / "config.json").read_text())
        original = json.loads((folder / "config.json").read_text())
        same = ("model_type", "vocab_size", "tie_word_embeddings", "sliding_window", "n_inner")
        for name in same:
            assert original.get(name) in (None, written.get(name))

    @pytest.mark.once("weights are read as arrays")
    def test_without_the_prefix_of_a_bare_model(self, pair, tmp_path):
        _, theirs, _, ours = pair
        if not theirs.config.tie_word_embeddings:
            pytest.skip("a bare model has no output of its own")
        theirs.base_model.save_pretrained(tmp_path)
        again = read_model(tmp_path, dtype="float32")
        for one, other in zip(ours.weights, again.weights, strict=True):
            np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


# Encoder-decoders.
VOCABULARY = 53
BART = dict(
    vocab_size=VOCABULARY, d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24,
    decoder_ffn_dim=24, encoder_attention_heads=4, decoder_attention_heads=4,
    max_position_embeddings=64,
)  # fmt: skip
MARIAN = BART | dict(pad_token_id=52, decoder_start_token_id=52, eos_token_id=0)
SEARCHED = ("m2m_100", "bart-unequal", "umt5", "t5gemma")  # elsewhere each is a compilation


def marian(**changes):
    return transformers.MarianMTModel(transformers.MarianConfig(**MARIAN | changes))


def read_pair(theirs, folder, is_sinusoidal=False):
    """A filled model, its folder, and ours read from there."""
    fill(theirs, "embed_positions.weight" if is_sinusoidal else None)
    if hasattr(theirs, "final_logits_bias"):
        theirs.final_logits_bias.normal_()
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def pair_batch(config):
    """Two sources, one padded, and targets that begin as the decoder's do."""
    rng = np.random.default_rng(0)
    least, most = 3, min(config.source_vocab_size, config.target_vocab_size) - 15
    source, target = rng.integers(least, most, (3, 11)), rng.integers(least, most, (3, 7))
    source[1, 6:] = config.pad_id
    source[2, 10:] = config.pad_id
    target[:, 0] = config.bos_id
    return source.astype("int32"), target.astype("int32")


def until_end(ids, config):
    assert config.eos_id in ids
    return ids[: ids.index(config.eos_id)]


class EncoderDecoderParity:
    """The same memory, logits and searches, and the same weights back."""

    def test_encoder_and_logits(self, pair):
        theirs, _, ours = pair
        source, target = pair_batch(ours.config)
        mask = torch.tensor(source != ours.config.pad_id)
        with torch.no_grad():
            inputs = dict(input_ids=torch.tensor(source), decoder_input_ids=torch.tensor(target))
            expected = theirs(**inputs, attention_mask=mask.long())
        logits = ops.convert_to_numpy(ours({"source_ids": source, "target_ids": target}))
        np.testing.assert_allclose(logits, expected.logits, atol=1e-4, rtol=1e-4)
        embedded = ours.source_embedding(ops.convert_to_tensor(source))
        keys = ops.convert_to_tensor(mask.numpy()[:, None, None])
        memory = ops.convert_to_numpy(ours.encoder(embedded, attention_mask=keys))
        encoded = expected.encoder_last_hidden_state
        np.testing.assert_allclose(memory[mask], encoded[mask], atol=1e-4, rtol=1e-4)

    @pytest.mark.parametrize(
        "beam_size,length_penalty", sample([(1, 0.0), (4, 1.0), (3, 2.0)], (3, 2.0))
    )
    def test_generation(self, pair, beam_size, length_penalty):
        theirs, folder, ours = pair
        if folder.name.rstrip("0") not in SEARCHED and BACKEND != "torch":
            pytest.skip("searched on PyTorch alone, to save time")
        config, room = ours.config, 12
        source, _ = pair_batch(config)
        expected = theirs.generate(
            input_ids=torch.tensor(source).long(),
            attention_mask=torch.tensor(source != config.pad_id).long(),
            num_beams=beam_size,
            do_sample=False,
            length_penalty=length_penalty,
            max_length=room + 1,
            forced_eos_token_id=config.eos_id,
            bad_words_ids=[[i] for i in {config.pad_id, config.bos_id} - {config.eos_id}],
        ).numpy()[:, 1:]
        search = Search(beam_size, length_penalty, scoring="transformers")
        search = compiled(translation_function(search, ours), ours)
        limits = ops.convert_to_tensor(np.full(len(source), room, "int32"))
        found, _ = search(ops.convert_to_tensor(source), limits)
        found = ops.convert_to_numpy(found)[:, 0]
        for mine, other in zip(found.tolist(), expected.tolist(), strict=True):
            assert until_end(mine, config) == until_end(other, config)

    def test_round_trip(self, pair, tmp_path):
        theirs, folder, ours = pair
        write_model(tmp_path, ours)
        before = load_file(folder / "model.safetensors")
        if theirs.config.model_type == "pegasus":  # it writes its sinusoids, too
            before = {x: y for x, y in before.items() if not x.endswith("embed_positions.weight")}
        # With a table for each side, none is shared, though the file may have one.
        has_own = not getattr(ours.config, "share_embeddings", True)
        unread = {"model.shared.weight"} if has_own else set()
        assert Checkpoint(tmp_path).names() - unread == before.keys() - unread
        for name in before.keys() - unread:
            found = load_file(tmp_path / "model.safetensors")[name]
            np.testing.assert_array_equal(found, before[name])
        again = type(theirs).from_pretrained(tmp_path).eval()
        source, target = (torch.tensor(x).long() for x in pair_batch(ours.config))
        inputs = dict(input_ids=source, decoder_input_ids=target)
        with torch.no_grad():
            np.testing.assert_array_equal(again(**inputs).logits, theirs(**inputs).logits)
