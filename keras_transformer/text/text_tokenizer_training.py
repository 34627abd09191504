"""Training of tokenizers with the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keras_transformer.config import require, require_whole
from keras_transformer.system.extras import missing
from keras_transformer.text.tokenizer import MAX_VOCAB_SIZE

KINDS = ("bytes", "characters", "wordpiece")


def library() -> Any:
    """Return the module `tokenizers`.

    Raises:
        ImportError: If it is not installed; the message names the extra to install.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise missing("the tokenizer of a language model", "pretrained") from error
    return tokenizers


def trained(texts: Iterable[str], kind: str, vocab_size: int, lowercase: bool) -> Any:
    """Return a trained `tokenizers.Tokenizer`; see `TextTokenizer.train`."""
    require(kind in KINDS, "kind", kind, f"one of {KINDS}")
    require_whole("vocab_size", vocab_size, 1)
    # The library allocates memory for `vocab_size` pieces at once, so it needs a limit.
    most = f"at most {MAX_VOCAB_SIZE:,}"
    require(vocab_size <= MAX_VOCAB_SIZE, "vocab_size", vocab_size, most)
    tokenizers = library()
    if kind == "characters":
        characters = sorted({x for text in texts for x in set(text)})
        vocabulary = {x: i for i, x in enumerate(["<|endoftext|>", *characters])}
        model = tokenizers.models.WordLevel(vocabulary, unk_token="<|endoftext|>")
        tokenizer = tokenizers.Tokenizer(model)
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
        tokenizer.pre_tokenizer = split
        tokenizer.decoder = tokenizers.decoders.Fuse()
        tokenizer.add_special_tokens(["<|endoftext|>"])
    elif kind == "bytes":
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
    else:
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = tokenizers.decoders.WordPiece()
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=vocab_size, special_tokens=special, show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        ids = {name: tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]")}
        tokenizer.post_processor = tokenizers.processors.BertProcessing(
            ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
        )
    return tokenizer
