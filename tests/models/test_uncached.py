"""Rotary rates that depend on the length: each step is the full pass over the tokens so far."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.hub.hugging_face_checkpoint import read_model
from keras_transformer.models import LLaMA, LLaMAConfig
from keras_transformer.running.search_functions import generation_function
from keras_transformer.search import Generation
from tests.backends import cases

V, ORIGINAL = 17, 7
SIZES = dict(d_model=16, d_ff=12, num_layers=3, num_heads=2, max_length=24, theta=20.0)
DYNAMIC = dict(rope_type="dynamic", factor=4.0, original_max_position_embeddings=ORIGINAL)
FACTORS = dict(short_factor=[1.0, 1.5, 2.0, 2.5], long_factor=[2.0, 3.0, 5.0, 8.0])
LONG = dict(rope_type="longrope", factor=4.0, original_max_position_embeddings=ORIGINAL, **FACTORS)
MODELS = {
    "dynamic": dict(scaling=DYNAMIC),
    "longrope": dict(scaling=LONG),
    "windowed": dict(scaling=LONG, window=4, window_layers=(1,), no_rotary=(2,)),
}
IDS = np.random.default_rng(0).integers(3, V, (2, 16)).astype("int32")


@pytest.fixture(scope="module", params=cases(MODELS, "windowed"))
def model(request, randomize):
    return randomize(LLaMA(LLaMAConfig(V, **SIZES, **MODELS[request.param])), scale=4.0)


def last_logits(model, ids):
    return ops.convert_to_numpy(model({"token_ids": ops.convert_to_tensor(ids)}))[:, -1]


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "prompt,paddings",
    cases([(4, (0, 0)), (4, (3, 1)), (9, (0, 0)), (9, (0, 2))], (4, (3, 1))),
)
def test_steps_are_full_passes(model, prompt, paddings):
    """Below the original length, across it and beyond it; each row by its own length."""
    longest = max(paddings)
    ids, segments = (
        np.zeros((2, longest + prompt), "int32"),
        np.ones((2, longest + prompt), "int32"),
    )
    for row, padding in enumerate(paddings):
        size = longest + prompt - padding
        ids[row, padding:], segments[row, :padding] = IDS[row, :size], 0
    is_padded = longest > 0

    def run(ids, segments, rest):
        found, state, step = model.prefill(ids, 16, 1, segments if is_padded else None)
        results = [found]
        for i in range(3):
            logits, state = step(rest[:, i : i + 1], state, longest + prompt + i)
            results.append(logits[:, 0])
        return ops.stack(results, axis=1)

    starts = [longest + prompt - padding for padding in paddings]
    rest = np.stack([IDS[row, start : start + 3] for row, start in enumerate(starts)])
    tensors = map(ops.convert_to_tensor, (ids, segments, rest))
    found = ops.convert_to_numpy(compiled(run, model)(*tensors))
    for row, start in enumerate(starts):
        for i in range(4):
            expected = last_logits(model, IDS[row : row + 1, : start + i])[0]
            np.testing.assert_allclose(found[row, i], expected, atol=1e-4)


def test_rows_that_are_packed_or_padded(model):
    """Each token's rates are of the length of its own sequence."""
    row = np.concatenate([IDS[:1, :8], IDS[1:, :5], np.zeros((1, 2), "int32")], axis=1)
    segments = np.array([[1] * 8 + [2] * 5 + [0] * 2], "int32")
    found = ops.convert_to_numpy(model({"token_ids": row, "segments": segments}))[0]
    for part, ids in ((slice(0, 8), IDS[:1, :8]), (slice(8, 13), IDS[1:, :5])):
        expected = ops.convert_to_numpy(model({"token_ids": ids}))[0]
        np.testing.assert_allclose(found[part], expected, atol=1e-4)
    shorter = ops.convert_to_numpy(model({"token_ids": IDS[:1, :5]}))[0]
    assert np.abs(found[:5] - shorter).max() > 0.01  # with the rates of a shorter sequence


def test_beams_find_what_full_passes_score(model):
    """The sum of log-probabilities of each beam, by full passes over its prefixes."""
    prompts = np.concatenate([np.zeros((2, 1), "int32"), IDS[:, :5]], axis=1)
    prompts[1, 0], segments = IDS[0, 7], np.ones((2, 6), "int32")
    segments[0, 0] = 0
    search = Generation(beam_size=3, max_new_tokens=5, length_penalty=0.0)
    tensors = map(ops.convert_to_tensor, (prompts, np.array([5, 5], "int32"), segments))
    ids, scores = compiled(generation_function(search, model), model)(*tensors)
    ids, scores = map(ops.convert_to_numpy, (ids, scores))
    for row in range(2):
        for beam in range(3):
            text = prompts[row, segments[row] > 0].tolist()
            new, total = [x for x in ids[row, beam].tolist() if x >= 0], 0.0
            for token in new:
                logits = last_logits(model, np.array([text], "int32"))[0]
                total += logits[token] - np.log(np.exp(logits).sum())
                text.append(token)
            assert scores[row, beam] == pytest.approx(total, abs=1e-3)


@pytest.mark.once("the steps of a cache are tested above; this compares with PyTorch")
@pytest.mark.parametrize(
    "name,kind", [("dynamic", "llama"), ("longrope", "llama"), ("longrope", "phi3")]
)
def test_across_the_original_length_as_transformers(name, kind, tmp_path):
    """Ours with a cache is theirs without. Theirs with one keeps LLaMA's keys of the old rates."""
    theirs = their_model(name, kind)
    theirs.save_pretrained(tmp_path)
    model = read_model(tmp_path, "float32")
    for length in (4, ORIGINAL, ORIGINAL + 1, 16):  # growing: theirs keeps the rates of the longest
        ids = IDS[:1, :length]
        with torch.no_grad():
            expected = theirs(torch.tensor(ids)).logits[:, -1].numpy()
        np.testing.assert_allclose(last_logits(model, ids), expected, atol=1e-4)
    expected, with_cache = (generated(theirs, IDS[:1, :4], cached) for cached in (False, True))
    found = steps(model, IDS[:1, :4], expected.argmax(-1)[:-1])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    short = ORIGINAL - 4 + 1
    np.testing.assert_allclose(with_cache[:short], expected[:short], atol=1e-4)
    same = np.allclose(with_cache, expected, atol=1e-4)
    assert same == (kind == "phi3")


def their_model(name, kind):
    """A LLaMA or Phi-3 of `transformers` with this scaling."""
    sizes = dict(
        vocab_size=V, hidden_size=16, intermediate_size=12, num_hidden_layers=2,
        num_attention_heads=2, initializer_range=0.8, pad_token_id=0, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip
    scaling = dict(MODELS[name]["scaling"], rope_theta=20.0)
    sizes |= dict(max_position_embeddings=ORIGINAL if name == "dynamic" else 4 * ORIGINAL)
    if kind == "phi3":
        sizes |= dict(original_max_position_embeddings=ORIGINAL)
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[kind](**sizes, rope_parameters=scaling)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.generation_config.eos_token_id = None
    return model


def generated(theirs, ids, use_cache):
    """Their logits (T, V) of each step of a greedy search."""
    found = theirs.generate(
        torch.tensor(ids), max_new_tokens=8, do_sample=False, use_cache=use_cache,
        output_logits=True, return_dict_in_generate=True,
    )  # fmt: skip
    return torch.cat(found.logits).numpy()


def steps(model, ids, rest):
    """Our logits (T, V) after the prompt and after each of the other tokens, with a cache."""
    logits, state, step = model.prefill(ids, 16, 1)
    found = [logits[0]]
    for i, token in enumerate(rest):
        logits, state = step(np.array([[token]], "int32"), state, ids.shape[1] + i)
        found.append(logits[0, 0])
    return np.stack([ops.convert_to_numpy(x) for x in found])
