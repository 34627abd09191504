"""Going on with texts: what `transformers` generates, we generate; alone, in a batch, streamed."""

import json

import keras
import numpy as np
import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import write_model
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import GPT, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.running.search_functions import next_token
from keras_transformer.search import Generation
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import EVERY_CASE, cases, sample
from tests.pretrained_files import llama_tokenizer

TEXTS = ["To be, or not to be, that is the question.", "The slings and arrows of fortune"] * 4
PROMPTS = ["To be", "The slings and", "q", ""]


@pytest.fixture(scope="module")
def tokenizer():
    return TextTokenizer.train(TEXTS, kind="bytes", vocab_size=280)


def models(kind, size):
    torch.manual_seed(3)
    common = dict(vocab_size=size, bos_token_id=0, eos_token_id=5, pad_token_id=0)
    if kind == "gpt2":
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=0.4, **common
            )
        )
    sizes = dict(
        hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip
    if kind == "mistral":
        config = transformers.MistralConfig(**sizes, **common, sliding_window=4)
        return transformers.MistralForCausalLM(config)
    if kind == "gemma2":  # every other layer has a window
        sizes |= dict(head_dim=4, query_pre_attn_scalar=4, sliding_window=4)
        caps = dict(attn_logit_softcapping=2.0, final_logit_softcapping=4.0)
        return transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**sizes, **common, **caps))
    if kind == "phi3":  # texts grow beyond the length at which the rotary rates change
        factors = dict(short_factor=[1.0, 1.5], long_factor=[2.0, 7.0])
        sizes |= dict(original_max_position_embeddings=8)
        sizes |= dict(rope_parameters=dict(rope_type="longrope", rope_theta=1e3, **factors))
        return transformers.Phi3ForCausalLM(transformers.Phi3Config(**sizes, **common))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **common))


# Gemma 2 has what LLaMA and Mistral have. Where each search is a compilation, it alone is tested.
KINDS = sample(["gpt2", "llama", "mistral", "gemma2", "phi3"], "gpt2", "gemma2", "phi3")
KINDS = cases(KINDS, "gemma2")


@pytest.fixture(scope="module", params=KINDS)
def pair(request, tokenizer, tmp_path_factory):
    """The model of `transformers`, and ours, read from its folder."""
    folder = tmp_path_factory.mktemp(request.param)
    theirs = models(request.param, tokenizer.vocab_size).eval()
    theirs.save_pretrained(folder)
    tokenizer.save(folder)
    return theirs, CausalLM.from_pretrained(folder)


def expected(theirs, ids, ends=(5,), **options):
    with torch.no_grad():
        found = theirs.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False, **options,
        )[0, len(ids) :].tolist()  # fmt: skip
    return until(found, ends)


def until(ids, ends):
    return ids[: next((i for i, one in enumerate(ids) if one in ends), len(ids))]


SEARCHES = {  # our options, theirs
    "greedy": ({}, {}),
    "repetition": (dict(repetition_penalty=1.5), dict(repetition_penalty=1.5)),
    "minimum": (dict(min_new_tokens=4), dict(min_new_tokens=4)),
    "beams": (
        dict(beam_size=3, scoring="transformers"),
        dict(num_beams=3, length_penalty=0.0, early_stopping=False),
    ),
}


@pytest.mark.parametrize("search", cases(SEARCHES, "repetition", "beams"))
def test_what_transformers_generates(pair, tokenizer, search):
    (theirs, writer), (ours, options) = pair, SEARCHES[search]
    prompts = tokenizer.encode(PROMPTS[:3])
    found = writer.generate_ids(prompts, Generation(max_new_tokens=12, **ours))
    assert found == [expected(theirs, ids, max_new_tokens=12, **options) for ids in prompts]
    assert len(set(map(tuple, found))) > 1


@pytest.mark.once("made of parts that are tested under each backend")
def test_alone_as_in_a_batch_and_streamed(pair):
    _, writer = pair
    for options in (
        dict(),
        dict(temperature=0.9, top_k=40, top_p=0.95, min_p=0.01, repetition_penalty=1.1, seed=4),
    ):
        together = writer.generate(PROMPTS, max_new_tokens=10, **options)
        first = writer.generate(PROMPTS[:1], max_new_tokens=10, **options)
        assert first == together[:1]
        if EVERY_CASE and "seed" not in options:
            assert writer.generate(PROMPTS, max_new_tokens=10, tokens_per_batch=1) == together
        assert "".join(writer.stream(PROMPTS[0], max_new_tokens=10, **options)) == first[0]


@pytest.mark.once("texts: no tensor differs")
def test_the_space_before_the_first_new_word(tmp_path):
    """A prompt and what is generated are together the text of all tokens."""
    tokenizer = llama_tokenizer(TEXTS)
    theirs = models("llama", tokenizer.vocab_size).eval()
    with torch.no_grad():  # pieces with a space are likely
        theirs.lm_head.weight[[i for x, i in tokenizer.pieces().items() if x[0] == "▁"]] *= 5.0
    theirs.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    writer = CausalLM.from_pretrained(tmp_path)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    prompts = ["To be", "The slings", "question"]
    ids = tokenizer.encode(prompts)
    found = [x + expected(theirs, x, max_new_tokens=6) for x in ids]
    texts = [fast.decode(x, skip_special_tokens=True) for x in found]
    continued = writer.generate(prompts, max_new_tokens=6)
    assert [x + y for x, y in zip(prompts, continued, strict=True)] == texts
    assert any(text.startswith(" ") for text in continued)
    assert ["".join(writer.stream(x, max_new_tokens=6)) for x in prompts] == continued


@pytest.mark.once("texts and lengths: no tensor differs")
def test_stop_and_limits(pair):
    _, writer = pair
    (text,) = writer.generate(["To be"], max_new_tokens=20)
    mark = text[3:5]
    assert writer.generate(["To be"], max_new_tokens=20, stop=[mark]) == [text[: text.index(mark)]]
    streamed = "".join(writer.stream("To be", max_new_tokens=20, stop=[mark]))
    assert streamed == text[: text.index(mark)]
    long = [[7] * 60]
    assert len(writer.generate_ids(long, Generation(max_new_tokens=30))[0]) <= 4
    with pytest.raises(ValueError, match=r"fewer than 64 tokens each, .* got 64 in prompt 0"):
        writer.generate_ids([[7] * 64])
    with pytest.raises(ValueError, match="max_new_tokens must be a whole number of at least 1"):
        writer.generate(["a"], max_new_tokens=0)
    with pytest.raises(ValueError, match="min_p must be in"):
        writer.generate(["a"], min_p=2)
    with pytest.raises(ValueError, match="temperature needs beam_size=1"):
        writer.generate(["a"], temperature=2, beam_size=2)


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_row_that_is_full_while_others_go_on(tokenizer):
    """The table of learned positions ends before the longest continuation of the batch does."""
    sizes = dict(d_model=16, num_layers=1, num_heads=2, max_length=16)
    keras.utils.set_random_seed(0)
    writer = CausalLM(GPT(GPTConfig(tokenizer.vocab_size, **sizes)), tokenizer)
    prompts, search = [[3, 4], [5, 6, 7] * 4], Generation(max_new_tokens=14)
    alone = [writer.generate_ids([x], search, ends=[0])[0] for x in prompts]
    assert [len(x) for x in alone] == [14, 4]
    assert writer.generate_ids(prompts, search, ends=[0]) == alone


def test_scores_are_those_of_the_logits(pair, tokenizer):
    theirs, writer = pair
    texts = ["To be, or not", "T", "The slings and arrows"]
    for text, score in zip(texts, writer.score(texts), strict=True):
        ids = torch.tensor(tokenizer.encode([text]))
        with torch.no_grad():
            log_probs = theirs(ids).logits[0, :-1].log_softmax(-1)
        wanted = log_probs.gather(1, ids[0, 1:, None]).sum().item()
        assert score == pytest.approx(wanted, abs=1e-3)
    with pytest.raises(ValueError, match="at most 64 tokens each"):
        writer.score(["be " * 64])


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_and_loaded(pair, tmp_path):
    _, writer = pair
    writer.save(tmp_path / "writer")
    again = CausalLM.load(tmp_path / "writer")
    assert again.generate(PROMPTS[:2], max_new_tokens=5) == writer.generate(
        PROMPTS[:2], max_new_tokens=5
    )
    with pytest.raises(ValueError, match="not a saved language model: there is no such"):
        CausalLM.load(tmp_path / "absent")
    config = json.loads((tmp_path / "writer" / "config.json").read_text())
    (tmp_path / "writer" / "config.json").write_text(json.dumps(config | {"tokenizer": "x"}))
    with pytest.raises(ValueError, match="is not the one its model was trained with"):
        CausalLM.load(tmp_path / "writer")


def test_a_tokenizer_that_is_too_large(tokenizer):
    sizes = dict(d_model=4, num_layers=1, num_heads=1)
    with pytest.raises(ValueError, match=r"it has \d+ pieces, the model 9"):
        CausalLM(GPT(GPTConfig(9, **sizes)), tokenizer)


@pytest.mark.once("made of parts that are tested under each backend")
def test_sampling_follows_the_probabilities(tokenizer):
    model = LLaMA(LLaMAConfig(300, d_model=8, d_ff=8, num_layers=1, num_heads=1, max_length=8))
    writer = CausalLM(model, tokenizer)
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    draws = (np.arange(1000) + 0.5) / 1000
    rows = keras.ops.convert_to_tensor(np.tile(logits, (1000, 1)).astype("float32"))
    for options, shares in (
        (dict(), [0.5, 0.3, 0.15, 0.05]),
        (dict(min_p=0.5), [0.625, 0.375, 0, 0]),
        (dict(top_k=3, top_p=0.9), [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0]),
        (dict(epsilon_cutoff=0.2), [0.625, 0.375, 0, 0]),
        (dict(epsilon_cutoff=0.9), [1, 0, 0, 0]),
    ):
        search = Generation(temperature=1.0, **options)
        uniform = keras.ops.convert_to_tensor(draws.astype("float32"))
        tokens = keras.ops.convert_to_numpy(next_token(search, rows, None, uniform))
        found = np.bincount(tokens, minlength=4) / 1000
        np.testing.assert_allclose(found, shares, atol=0.002)
    assert writer.generate(["To be"], max_new_tokens=3, temperature=1.0)


SEARCHES_WITH_ENDS = {  # our options, theirs
    "greedy": ({}, {}),
    "penalty": (
        dict(min_new_tokens=4, repetition_penalty=1.5),
        dict(min_new_tokens=4, repetition_penalty=1.5),
    ),
    "beams": (
        dict(beam_size=4, length_penalty=0.5, min_new_tokens=3, scoring="transformers"),
        dict(num_beams=4, length_penalty=0.5, min_new_tokens=3, early_stopping=False),
    ),
}


class TestSeveralEnds:
    """Each of three tokens ends a text, wherever a folder lists them."""

    @pytest.fixture(scope="class", params=["config", "generation_config"])
    def several(self, request, tokenizer, tmp_path_factory):
        """A model of `transformers` whose texts end in three ways, ours, and the prompts."""
        from_config = request.param == "config"
        if not from_config and keras.backend.backend() != "torch":
            pytest.skip("what is read is the same: searched on PyTorch alone, to save time")
        folder = tmp_path_factory.mktemp(request.param)
        theirs = models("llama" if from_config else "gpt2", tokenizer.vocab_size).eval()
        prompts = tokenizer.encode(PROMPTS[:3])
        endless = [expected(theirs, ids, (), max_new_tokens=12) for ids in prompts]
        # Tokens that the model does choose, at different places.
        ends = list(dict.fromkeys([5, endless[0][2], endless[1][5]]))
        assert len(ends) == 3
        theirs.generation_config.eos_token_id = ends
        if from_config:
            theirs.config.eos_token_id = ends
        theirs.save_pretrained(folder)
        if from_config:
            (folder / "generation_config.json").unlink()
        tokenizer.save(folder)
        prompts.append([7, ends[1], 9, ends[2]])  # what it reads may have ended before
        return type(theirs).from_pretrained(folder), CausalLM.from_pretrained(folder), prompts

    @pytest.mark.parametrize("search", cases(SEARCHES_WITH_ENDS, "beams"))
    def test_what_transformers_generates(self, several, search):
        (theirs, writer, prompts), (ours, options) = several, SEARCHES_WITH_ENDS[search]
        ends = theirs.generation_config.eos_token_id
        found = writer.generate_ids(prompts, Generation(max_new_tokens=12, **ours))
        # The end that is forced here at the limit counts in the length.
        options = dict(max_new_tokens=13, forced_eos_token_id=ends) | options
        assert found == [expected(theirs, ids, ends, **options) for ids in prompts]
        assert len({len(ids) for ids in found}) > 1

    @pytest.mark.once("made of parts that are tested under each backend")
    def test_sampled_and_streamed(self, several):
        theirs, writer, prompts = several
        draws = dict(max_new_tokens=12, temperature=0.7, top_k=4)
        found = writer.generate_ids(prompts, Generation(**draws), seed=1)
        assert min(map(len, found)) < 12
        assert not any({*theirs.generation_config.eos_token_id} & {*ids} for ids in found)
        for options in (dict(max_new_tokens=12), dict(seed=1, **draws)):
            (text,) = writer.generate(PROMPTS[:1], **options)
            assert "".join(writer.stream(PROMPTS[0], **options)) == text

    def test_saved_and_written_back(self, several, tmp_path):
        theirs, writer, prompts = several
        ends = theirs.generation_config.eos_token_id
        writer.save(tmp_path / "saved")
        again = CausalLM.load(tmp_path / "saved")
        assert again.model.config == writer.model.config
        config = json.loads((tmp_path / "saved" / "config.json").read_text())
        assert config["model"]["eos_id"] == ends
        write_model(tmp_path / "written", again.model)
        written = type(theirs).from_pretrained(tmp_path / "written")
        assert written.generation_config.eos_token_id == ends
        found = [expected(written, ids, ends, max_new_tokens=12) for ids in prompts]
        assert found == [expected(theirs, ids, ends, max_new_tokens=12) for ids in prompts]
