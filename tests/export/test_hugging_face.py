"""An exported Hugging Face folder translates in `transformers` like the Translator."""

import functools

import keras
import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file

from keras_transformer import load_pretrained
from keras_transformer.config import TransformerConfig
from keras_transformer.export import hugging_face
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import Gemma, GemmaConfig, LLaMA, LLaMAConfig, Transformer
from keras_transformer.running.batches import until_end
from keras_transformer.system.files import read_json
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.translate.translator import Translator
from tests.export.conversions import ENGLISH, GERMAN, own_translator
from tests.language.chats import chat_folder
from tests.text.chat_formats import MESSAGES

TEXTS = [*ENGLISH[:3], "犬 dog </s>", "dog ½"]
WIDTHS = dict(d_model=16, d_ff=24, num_layers=2, num_heads=2, max_length=64)
FAMILIES = ("marian", "m2m_100", "nllb", "mbart", "t5", "umt5", "madlad", "bart", "t5gemma")
OWN = {
    "post_norm": {},
    "pre_norm": dict(norm_first=True, activation="gelu", eos_id=(3, 29, 230)),
    "untied": dict(tie_output=False, norm_first=True),
    "separate": dict(share_embeddings=False),
}

if keras.backend.backend() != "torch":  # weights are arrays, whatever runs here
    FAMILIES, OWN = ("nllb",), {"pre_norm": OWN["pre_norm"]}


@pytest.fixture(scope="module")
def saved(randomize, tmp_path_factory):
    """`saved(name)`: a translator as training leaves it, random."""

    @functools.cache
    def save(name):
        folder = tmp_path_factory.mktemp(name)
        own_translator(OWN[name], randomize).save(folder)
        return folder

    return save


def generated(folder, texts, beam_size):
    """Return the texts that `transformers` generates from a folder, one by one."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    found = []
    for text in texts:
        inputs = tokenizer([text], return_tensors="pt")
        room = inputs["input_ids"].shape[1] + 10
        options = dict(num_beams=beam_size, length_penalty=1.0, do_sample=False)
        output = model.generate(**inputs, max_length=room + 1, **options)
        # It leaves the end there, which may be a token like others.
        ends = np.atleast_1d(model.generation_config.eos_token_id)
        ids = [until_end(row[1:], ends) for row in output.tolist()]
        found += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return found


@pytest.mark.parametrize("name,beam_size", [*((name, 4) for name in OWN), ("pre_norm", 1)])
def test_our_own(name, beam_size, saved, tmp_path):
    folder = saved(name)
    out = hugging_face(folder, tmp_path / "out")
    translator = Translator.load(folder)
    plain = [text.replace("</s>", "") for text in TEXTS]  # the end of a text to `transformers`
    options = dict(beam_size=beam_size, length_penalty=1.0, scoring="transformers")
    found = translator.translate(plain, max_extra_length=10, **options)
    assert generated(out, plain, beam_size) == found
    assert any(found)
    again = load_pretrained(out)
    assert again.search["beam_size"] == 4  # what the exported folder says holds
    options |= dict(max_extra_length=10)
    assert again.translate(TEXTS, **options) == translator.translate(TEXTS, **options)
    np.testing.assert_allclose(
        again.score(ENGLISH[:3], GERMAN[:3]), translator.score(ENGLISH[:3], GERMAN[:3]), rtol=1e-4
    )


@pytest.mark.parametrize("kind", FAMILIES)
def test_there_and_back(pretrained_folder, tmp_path, kind):
    folder = tmp_path / "theirs"
    folder.mkdir()
    pretrained_folder(kind, folder, ENGLISH, GERMAN)
    load_pretrained(folder).save(tmp_path / "ours")
    out = hugging_face(tmp_path / "ours", tmp_path / "out")
    before, after = (load_file(x / "model.safetensors") for x in (folder, out))
    assert after
    for name, value in after.items():
        assert np.array_equal(value, before[name]), name
    missing = {name.rpartition(".")[0] for name in before.keys() - after.keys()}
    # Only what another name holds as well.
    assert missing <= {"encoder.embed_tokens", "decoder.embed_tokens", "lm_head"} | {
        f"model.{side}.embed_tokens" for side in ("encoder", "decoder")
    }
    for name in ("sentencepiece.bpe.model", "spiece.model", "source.spm", "target.spm"):
        if (folder / name).is_file():
            assert (folder / name).read_bytes() == (out / name).read_bytes()
    if (vocabulary := folder / "vocab.json").is_file():
        assert read_json(vocabulary) == read_json(out / "vocab.json")
    if kind == "bart":
        assert read_json(out / "generation_config.json")["forced_bos_token_id"] == 0
        assert (folder / "merges.txt").read_bytes() == (out / "merges.txt").read_bytes()
    loaded, problems = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        out, output_loading_info=True
    )
    assert not problems["missing_keys"] and not problems["unexpected_keys"]
    again = load_pretrained(out)
    assert again.tokenizer.target_languages == load_pretrained(folder).tokenizer.target_languages
    ids = torch.tensor([[5, 6, 7, 2]])
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    both = [model.eval()(input_ids=ids, decoder_input_ids=ids).logits for model in (loaded, theirs)]
    assert torch.equal(*both)


WRITERS = {
    "llama": lambda size: LLaMA(LLaMAConfig(size, **WIDTHS, num_kv_heads=1, eos_id=(3, 29, 230))),
    "qwen3": lambda size: LLaMA(LLaMAConfig(size, **WIDTHS, qk_norm=True, tie_output=True)),
    "gemma3_text": lambda size: Gemma(
        GemmaConfig(
            size, **WIDTHS, num_kv_heads=1, head_dim=8, window=4, window_layers=(0,), qk_norm=True,
            local_theta=100.0, eos_id=(7, 8),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITERS)
def test_language_models(kind, tmp_path, randomize):
    """`transformers` generates the same tokens, up to the same ends, from the same text."""
    tokenizer = TextTokenizer.train(ENGLISH, kind="bytes", vocab_size=300)
    writer = CausalLM(randomize(WRITERS[kind](tokenizer.vocab_size), scale=2.0), tokenizer)
    writer.save(tmp_path / "ours")
    out = hugging_face(tmp_path / "ours", tmp_path / "out")
    assert read_json(out / "config.json")["model_type"] == kind
    theirs = transformers.AutoModelForCausalLM.from_pretrained(out).eval()
    theirs_too = transformers.AutoTokenizer.from_pretrained(out)
    ends = writer.model.config.eos_ids
    assert theirs.generation_config.eos_token_id == (list(ends) if len(ends) > 1 else ends[0])
    for text in ENGLISH[:3]:
        inputs = theirs_too([text], return_tensors="pt")
        assert inputs["input_ids"].tolist() == tokenizer.encode([text])
        found = theirs.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=12,
            do_sample=False,
        )
        expected = until_end(found[0, inputs["input_ids"].shape[1] :].tolist(), ends)
        assert writer.generate([text], max_new_tokens=12) == tokenizer.decode([expected])
    again = load_pretrained(out)
    assert again.generate(ENGLISH[:3], max_new_tokens=12) == writer.generate(
        ENGLISH[:3], max_new_tokens=12
    )


def test_chat_templates(tmp_path):
    chat_folder(tmp_path / "theirs", "gemma")
    load_pretrained(tmp_path / "theirs").save(tmp_path / "ours")
    out = hugging_face(tmp_path / "ours", tmp_path / "out")
    found, expected = (
        transformers.AutoTokenizer.from_pretrained(folder).apply_chat_template(
            MESSAGES, add_generation_prompt=True, return_dict=False
        )
        for folder in (out, tmp_path / "theirs")
    )
    assert found == expected


def test_protection_is_left_out(saved, tmp_path):
    """`transformers` only searches."""
    out = hugging_face(saved("pre_norm"), tmp_path / "out")
    translator = Translator.load(saved("pre_norm"))
    translator.search = {"protect": True}
    translator.save(tmp_path / "protected")
    with pytest.warns(UserWarning, match="protect is left out"):
        other = hugging_face(tmp_path / "protected", tmp_path / "other")
    assert (other / "generation_config.json").read_bytes() == (
        out / "generation_config.json"
    ).read_bytes()


def test_bad_input(saved, tmp_path, randomize):
    folder = saved("pre_norm")
    out = hugging_face(folder, tmp_path / "out")
    with pytest.raises(FileExistsError, match="out exists: choose another"):
        hugging_face(folder, out)
    hugging_face(folder, out, overwrite=True)
    with pytest.raises(ValueError, match="is not a saved translator"):
        hugging_face(tmp_path / "none", tmp_path / "other")
    translator = Translator.load(folder)
    config = translator.model.config.to_dict() | dict(positions="learned", share_embeddings=False)
    model = randomize(Transformer(TransformerConfig.from_dict(config)))
    Translator(model, translator.tokenizer).save(tmp_path / "learned")
    with pytest.raises(ValueError, match=r"cannot be written as a Hugging Face checkpoint. marian"):
        hugging_face(tmp_path / "learned", tmp_path / "other")
    for name, value in dict(diversity_rate=0.5, max_extra_length=7, shortlist=True).items():
        translator.search = {name: value}
        translator.save(tmp_path / name)
        message = f"{name} must be .*, for `transformers` does not have it, got {value}"
        with pytest.raises(ValueError, match=message):
            hugging_face(tmp_path / name, tmp_path / "other")
    assert not (tmp_path / "other").exists()
