"""Random checkpoints with drawn `generation_config` values, and what `generate()` makes of them."""

from __future__ import annotations

import json

import numpy as np
import torch
import transformers

from keras_transformer import load_pretrained
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.hub.families.parity import DECODER_IDS
from tests.pretrained_files import pretrained_folder, whisper_folder

TEXTS = [f"The {x} {y} sees the {z}." for x in ("old", "red") for y in ("man", "dog", "child")
         for z in ("house", "boat", "tree")]  # fmt: skip
LANGUAGES = {
    "m2m_100": ("en", "de"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart": ("en_XX", "de_DE"),
}
TRANSLATORS = ("marian", "m2m_100", "nllb", "mbart", "bart", "t5", "umt5")
_LLAMA = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=48, max_position_embeddings=64,
)  # fmt: skip
_GEMMA = _LLAMA | dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=16)
_GPT = dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)
WRITERS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", _GPT),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _LLAMA),
    "mistral": ("MistralForCausalLM", "MistralConfig", _LLAMA | dict(sliding_window=None)),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _LLAMA),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", _LLAMA | dict(head_dim=8)),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", _GEMMA),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", _GEMMA),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", _LLAMA | dict(sliding_window=None)),
}
FAMILIES = (*TRANSLATORS, *WRITERS, "whisper")
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a who".split()
# Values of each field, of which some cases have one.
CHOICES = {
    "num_beams": (1, 2, 3, 4),
    "length_penalty": (0.0, 0.6, 1.0, 2.0),
    "early_stopping": (True, False),
    "no_repeat_ngram_size": (1, 2, 3),
    "repetition_penalty": (0.8, 1.3, 3.0),
    "forced_eos_token_id": (True,),
}


def write_folder(family, folder):
    """Write the random model of a family with its tokenizer."""
    if family == "whisper":
        whisper_folder(folder)
        theirs = transformers.WhisperForConditionalGeneration.from_pretrained(folder)
        with torch.no_grad():  # for texts that vary
            for name, weight in theirs.model.decoder.named_parameters():
                if weight.ndim > 1:
                    weight *= 1 if "embed" in name else 3
        theirs.save_pretrained(folder)
        return
    if family in TRANSLATORS:
        targets = [x.replace("The", "Der") for x in TEXTS]
        theirs = pretrained_folder(family, folder, TEXTS, targets)
        if family == "umt5":  # `transformers` scales its logits, see docs/pretrained.md
            theirs.config.tie_word_embeddings = True
    else:
        kind, config, options = WRITERS[family]
        torch.manual_seed(3)
        theirs = getattr(transformers, kind)(
            getattr(transformers, config)(**DECODER_IDS | options, initializer_range=0.4)
        )
        (folder / "vocab.txt").write_text("\n".join(PIECES))
        TextTokenizer.read(folder).save(folder)
        (folder / "vocab.txt").unlink()
        theirs.save_pretrained(folder)


def drawn(family, ids, random, vocab_size):
    """Return drawn fields, with the ids of the special tokens."""
    fields = {
        name: values[random.integers(len(values))]
        for name, values in CHOICES.items()
        if random.random() < 0.45
    }
    eos, start = ids["eos_token_id"], ids.get("decoder_start_token_id")
    most = 26 if family in LANGUAGES else vocab_size  # without the tokens of languages
    free = [i for i in range(5, most) if i not in ids.values()]
    some = random.choice(free, len(free) // 2, replace=False).tolist()
    if fields.pop("forced_eos_token_id", None):
        fields["forced_eos_token_id"] = eos
    else:  # random weights seldom end a text, unless there are many ends
        fields["eos_token_id"] = [eos, *some[6 : 6 + len(some) // 4]]
    if random.random() < 0.3:
        fields["suppress_tokens"] = some[:3]
    if random.random() < 0.3:
        fields["begin_suppress_tokens"] = [some[3], eos]
    if family in TRANSLATORS:
        # What our searches never generate.
        bad = [[ids["pad_token_id"]]] + ([[start]] if start not in (eos, None) else [])
        fields["bad_words_ids"] = bad + ([[some[4]]] if random.random() < 0.3 else [])
        fields["max_length"] = int(random.integers(6, 20))
        if random.random() < 0.4:
            fields["min_length"] = int(random.integers(2, 8))
        if family not in LANGUAGES and random.random() < 0.4:
            fields["forced_bos_token_id"] = some[5]
    elif family in WRITERS:
        name = ("max_new_tokens", "max_length")[random.integers(2)]
        fields[name] = int(random.integers(12, 24))
        if random.random() < 0.4:
            fields["min_new_tokens"] = int(random.integers(2, 8))
    else:
        fields["max_length"] = int(random.integers(5, 15))
    return fields


def configure(folder, fields, legacy, original):
    """Write the fields into `generation_config.json`, or into `config.json` as older folders."""
    generation, path = original
    content = {**generation, **fields}
    if not legacy:
        path.write_text(json.dumps(content))
        return
    path.unlink(missing_ok=True)
    config = folder / "config.json"
    content = {x: y for x, y in content.items() if x != "transformers_version"}
    config.write_text(json.dumps(json.loads(config.read_text()) | content))


@torch.no_grad()
def translations(family, folder, texts):
    """Return the ids that our imported model and theirs make of texts."""
    languages = LANGUAGES.get(family, ())
    ours = load_pretrained(folder, *languages)
    tokenizer = ours.tokenizer
    tokenizer.decode_target = lambda rows: [json.dumps(row) for row in rows]
    found = [json.loads(x) for x in ours.translate(texts)]
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    options = dict(forced_bos_token_id=tokenizer.target_frame.before[0]) if languages else {}
    ends, expected = ours.config.eos_ids, []
    for ids in tokenizer.encode_source(texts):
        row = theirs.generate(torch.tensor([ids]), **options)[0, 1:].tolist()
        expected.append(_until(row, (*ends, ours.config.pad_id)))
    return found, expected


@torch.no_grad()
def continuations(folder, prompts):
    """Return the ids that our imported model and theirs add to prompts."""
    ours = load_pretrained(folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    found, expected = ours.generate_ids(prompts), []
    for ids in prompts:
        given = torch.tensor([ids])
        row = theirs.generate(given, attention_mask=torch.ones_like(given))[0, len(ids) :]
        expected.append(_until(row.tolist(), ours.model.config.eos_ids))
    return found, expected


@torch.no_grad()
def transcriptions(folder, seed):
    """Return the ids that our imported model and theirs hear in a noise."""
    ours = load_pretrained(folder)
    theirs = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    config = ours.model.config
    samples = np.random.default_rng(seed).normal(0, 0.3, ours._longest).astype("float32")
    found = ours.transcribe_ids([samples], language="de")
    features = torch.tensor(ours._features(samples).T[None])
    row = theirs.generate(features, language="de", task="transcribe")[0].tolist()
    begun = ours.first_ids("de")
    row = row[len(begun) :] if row[: len(begun)] == begun else row
    return found, [_until(row, (*config.eos_ids, config.pad_id))]


def _until(ids, ends):
    return next((ids[:i] for i, one in enumerate(ids) if one in ends), ids)
