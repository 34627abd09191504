"""Small random models and tokenizers, in the same files as on the Hugging Face hub."""

from __future__ import annotations

import io
import json

import pytest
import sentencepiece

from keras_transformer.text.text_tokenizer import TextTokenizer


def _learn(texts, vocab_size, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=vocab_size,
        hard_vocab_limit=False, minloglevel=2, **options,
    )  # fmt: skip
    return model.getvalue()


def _pieces_of(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(3, len(processor))]  # without its special ones


def marian_files(folder, source, target, vocab_size=90, separate=False):
    """Write the files of a Marian tokenizer, like those of OPUS-MT."""
    models = [_learn(texts, vocab_size) for texts in (source, target)]
    sides = [_pieces_of(model) for model in models]
    vocabularies = sides if separate else [sides[0] + sides[1]]
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(model)
    for name, pieces in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        pieces = list(dict.fromkeys(["</s>", "<unk>", *pieces, ">>deu<<", ">>fra<<", "<pad>"]))
        (folder / name).write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    config = dict(source_lang="en", target_lang="de", separate_vocabs=separate)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def llama_tokenizer(texts, style="llama", vocab_size=340):
    """A `tokenizer.json` in the style of LLaMA 1 and 2, Mistral ("metaspace") or Gemma.

    Spaces are "▁", and what is no piece is spelled as bytes.
    """
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE(unk_token="<unk>", byte_fallback=True))
    special = ["<unk>", "<s>", "</s>"]
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[*special, *(f"<0x{x:02X}>" for x in range(256))],
        show_progress=False,
    )  # fmt: skip
    space, normalizers, decoders = "\u2581", library.normalizers, library.decoders
    replaced, back = normalizers.Replace(" ", space), decoders.Replace(space, " ")
    if style == "metaspace":
        tokenizer.pre_tokenizer = library.pre_tokenizers.Metaspace(prepend_scheme="first")
        back = decoders.Metaspace(prepend_scheme="first")
        tokenizer.decoder = decoders.Sequence([back, decoders.ByteFallback(), decoders.Fuse()])
    else:
        before = [normalizers.Prepend(space)] if style == "llama" else []
        tokenizer.normalizer = normalizers.Sequence([*before, replaced])
        strip = [decoders.Strip(" ", 1, 0)] if style == "llama" else []
        every = [back, decoders.ByteFallback(), decoders.Fuse(), *strip]
        tokenizer.decoder = decoders.Sequence(every)
    split = library.pre_tokenizers.Split(space, "merged_with_next")
    if style != "metaspace":
        tokenizer.pre_tokenizer = split
    tokenizer.train_from_iterator(texts, trainer)
    if style != "metaspace":
        tokenizer.pre_tokenizer = None
    content = json.loads(tokenizer.to_str())
    for token in content["added_tokens"]:
        token["special"] = token["content"] in special
    content["added_tokens"] = [x for x in content["added_tokens"] if x["special"]]
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }  # fmt: skip
    return TextTokenizer(json.dumps(content).encode(), add_special_tokens=True)


_T5 = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
_MADLAD = dict(unk_id=0, bos_id=1, eos_id=2, user_defined_symbols=["<2de>", "<2fr>"])
LAYOUTS = {  # kind: SentencePiece's options, the model's file, tokenizer_config.json
    "m2m_100": ({}, "sentencepiece.bpe.model", dict(tokenizer_class="M2M100Tokenizer")),
    "nllb": (
        dict(model_type="bpe"),
        "sentencepiece.bpe.model",
        dict(tokenizer_class="NllbTokenizer"),
    ),
    "mbart": ({}, "sentencepiece.bpe.model", dict(tokenizer_class="MBart50Tokenizer")),
    "mbart25": ({}, "sentencepiece.bpe.model", dict(tokenizer_class="MBartTokenizer")),
    "t5": (_T5, "spiece.model", dict(tokenizer_class="T5Tokenizer")),
    "umt5": (_T5, "spiece.model", dict(tokenizer_class="T5Tokenizer")),
    "madlad": (
        _MADLAD,
        "spiece.model",
        dict(tokenizer_class="T5Tokenizer", extra_ids=0, pad_token="<s>"),
    ),
}


def tokenizer_files(kind, folder, texts, vocab_size=120):
    """Write the files of a tokenizer of this kind; return the fields that `config.json` needs."""
    if kind == "bart":
        pieces = pytest.importorskip("tokenizers").ByteLevelBPETokenizer()
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        pieces.train_from_iterator(texts, 300, 2, special_tokens=special, show_progress=False)
        pieces.save_model(str(folder))
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BartTokenizer"}')
        ids = dict(pad_token_id=1, eos_token_id=2, decoder_start_token_id=2)
        return dict(model_type="bart", vocab_size=pieces.get_vocab_size() + 3, **ids)
    if kind == "t5gemma":
        content = llama_tokenizer(texts, "gemma").content
        (folder / "tokenizer.json").write_bytes(content)
        named = {f"{x}_token": y for x, y in dict(bos="<s>", eos="</s>", unk="<unk>").items()}
        options = dict(tokenizer_class="GemmaTokenizer", pad_token="<unk>", **named)
        (folder / "tokenizer_config.json").write_text(json.dumps(options))
        ids = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
        size = len(json.loads(content)["model"]["vocab"])
        return dict(model_type=kind, decoder=dict(vocab_size=size + 5, **ids))
    learning, name, options = LAYOUTS[kind]
    model = _learn(texts, vocab_size, **learning)
    (folder / name).write_bytes(model)
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    size = sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size()
    special = dict(pad_token_id=1, eos_token_id=2, decoder_start_token_id=2)
    if kind in ("t5", "umt5"):
        return dict(
            model_type=kind,
            vocab_size=size + 100 + 7,
            **dict(pad_token_id=0, eos_token_id=1, decoder_start_token_id=0),
        )
    if kind == "madlad":
        return dict(model_type="t5", vocab_size=size, **special | dict(decoder_start_token_id=0))
    if kind == "m2m_100":
        pieces = ["<s>", "<pad>", "</s>", "<unk>", *_pieces_of(model)]
        (folder / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(pieces)}))
        return dict(model_type="m2m_100", vocab_size=len(pieces) + 100 + 8, **special)
    if kind == "nllb":
        return dict(model_type="m2m_100", vocab_size=size + 1 + 202 + 1 + 2, **special)
    if kind == "mbart25":  # which translates into de_DE
        special["decoder_start_token_id"] = size + 1 + 2
        return dict(model_type="mbart", vocab_size=size + 1 + 25 + 1, **special)
    return dict(model_type="mbart", vocab_size=size + 1 + 52 + 1, **special)


_SIZES = dict(
    d_model=16, max_position_embeddings=64, encoder_layers=2, decoder_layers=2, init_std=0.5,
    encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
    scale_embedding=True,
)  # fmt: skip


def pretrained_folder(kind, folder, texts, targets=None, layers=2):
    """Write a random model of a family with its tokenizer; return the model."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1 if kind == "marian" else 5)
    sizes = _SIZES | dict(encoder_layers=layers, decoder_layers=layers)
    if kind == "marian":
        marian_files(folder, texts, targets)
        size = len(json.loads((folder / "vocab.json").read_text()))
        special = dict(pad_token_id=size - 1, decoder_start_token_id=size - 1)
        config = transformers.MarianConfig(
            vocab_size=size, activation_function="swish", bad_words_ids=[[size - 1]],
            **special, **sizes,
        )  # fmt: skip
        model = transformers.MarianMTModel(config)
        model.save_pretrained(folder)
        return model.eval()
    found = tokenizer_files(kind, folder, texts)
    if found["model_type"] in ("t5", "umt5"):
        tasks = {
            f"translation_en_to_{x}": dict(prefix=f"translate English to {y}: ")
            for x, y in dict(de="German", fr="French").items()
        }
        prefix = "UMT5" if kind == "umt5" else "T5"
        config = getattr(transformers, f"{prefix}Config")(
            **found, d_model=16, d_kv=8, d_ff=32, num_layers=layers, num_heads=2,
            initializer_factor=3.0, task_specific_params=None if kind == "madlad" else tasks,
            **(dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
               if kind == "madlad" else {}),
        )  # fmt: skip
        model = getattr(transformers, f"{prefix}ForConditionalGeneration")(config)
    elif kind == "t5gemma":
        stack = found["decoder"] | dict(
            hidden_size=16, intermediate_size=32, num_hidden_layers=layers, head_dim=8,
            num_attention_heads=2, num_key_value_heads=1, sliding_window=4, initializer_range=0.5,
            final_logit_softcapping=5.0,
        )  # fmt: skip
        config = transformers.T5GemmaConfig(encoder=dict(stack), decoder=dict(stack))
        model = transformers.T5GemmaForConditionalGeneration(config)
    elif kind == "bart":
        config = transformers.BartConfig(**found, **sizes)
        model = transformers.BartForConditionalGeneration(config)
        model.generation_config.forced_bos_token_id = 0
    elif kind in ("mbart", "mbart25"):
        config = transformers.MBartConfig(**found, **sizes)
        model = transformers.MBartForConditionalGeneration(config)
    else:
        config = transformers.M2M100Config(**found, **sizes)
        model = transformers.M2M100ForConditionalGeneration(config)
    model.save_pretrained(folder)
    return model.eval()


_SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>"]
_SPECIAL += ["<|transcribe|>", "<|notimestamps|>"]


def whisper_folder(folder):
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    pieces = json.loads(TextTokenizer.train(["a"], "bytes", 257).content)["model"]["vocab"]
    words = [piece for piece in pieces if piece not in _SPECIAL]
    (folder / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    ids = {piece: len(words) + i for i, piece in enumerate(_SPECIAL)}
    (folder / "added_tokens.json").write_text(json.dumps(ids))
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    config = transformers.WhisperConfig(
        vocab_size=len(words) + len(_SPECIAL), d_model=16, num_mel_bins=8,
        encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=24, decoder_ffn_dim=24, max_source_positions=12, max_target_positions=16,
        pad_token_id=end, bos_token_id=end, eos_token_id=end, decoder_start_token_id=start,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            weight.normal_(float("norm" in name and name.endswith("weight")), 0.4)
    theirs.generation_config = transformers.GenerationConfig(
        is_multilingual=True, lang_to_id={x: ids[x] for x in ("<|en|>", "<|de|>")},
        task_to_id={x: ids[f"<|{x}|>"] for x in ("translate", "transcribe")},
        no_timestamps_token_id=ids["<|notimestamps|>"], decoder_start_token_id=start,
        pad_token_id=end, bos_token_id=end, eos_token_id=end, max_length=16,
        suppress_tokens=[*range(40, 90), start],
        begin_suppress_tokens=[32, end], alignment_heads=[[1, 0], [0, 1]],
    )  # fmt: skip
    theirs.save_pretrained(folder)
    return folder
