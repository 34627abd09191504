"""Tokenizers from the vocabulary files of checkpoints of encoders, GPT-2 and Whisper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sentencepiece

from keras_transformer.config import require
from keras_transformer.system.files import read_json
from keras_transformer.text.pieces import fields_of

WORDS, MERGES, LINES, ADDED = "vocab.json", "merges.txt", "vocab.txt", "added_tokens.json"
PIECES, DEBERTA_PIECES = "sentencepiece.bpe.model", "spm.model"
FRAMED = ("bart", "data2vec-text", "roberta", "xlm-roberta")  # byte pairs inside <s> and </s>
# WordPieces of an MPNet, between RoBERTa's special tokens.
MPNET = dict(cls_token="<s>", sep_token="</s>", pad_token="<pad>", mask_token="<mask>")
CAMEMBERT = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED")
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")  # replace SentencePiece's first three


def from_vocabulary(
    library: Any, folder: Path, options: Mapping[str, Any], kind: str | None
) -> tuple[Any, bool] | None:
    """Make a tokenizer of the library `tokenizers` from the vocabulary files of a folder.

    Args:
        library: The module `tokenizers`.
        folder: Folder with `vocab.json` and `merges.txt`; `vocab.txt`; `sentencepiece.bpe.model`
            of an XLM-RoBERTa or a CamemBERT; or `spm.model` of a DeBERTa.
        options: Contents of its `tokenizer_config.json`.
        kind: The `model_type` of its model, which determines how texts are split and which
            special tokens are added. None: like GPT-2 or BERT.

    Returns:
        The tokenizer and whether it adds special tokens; None if there is no vocabulary.
    """
    if (folder / WORDS).is_file() and (folder / MERGES).is_file():
        return _byte_pairs(library, folder, options, framed=kind in FRAMED)
    if kind in ("camembert", "xlm-roberta") and (folder / PIECES).is_file():
        return _fairseq_pieces(library, folder / PIECES, kind == "camembert"), True
    if kind == "deberta-v2" and (folder / DEBERTA_PIECES).is_file():
        return _deberta_pieces(library, folder / DEBERTA_PIECES, options), True
    if not (folder / LINES).is_file():
        return None
    if kind == "esm":
        return _residues(library, folder / LINES), True
    special = MPNET if kind == "mpnet" else {}
    tokenizer = library.BertWordPieceTokenizer(
        str(folder / LINES),
        **special,
        lowercase=options.get("do_lower_case", True),
        strip_accents=options.get("strip_accents"),
        handle_chinese_chars=options.get("tokenize_chinese_chars", True),
    )
    if special:
        tokenizer.add_special_tokens([library.AddedToken(special["mask_token"], lstrip=True)])
        ends = ((x, tokenizer.token_to_id(x)) for x in (special["sep_token"], special["cls_token"]))
        processor = library.processors.RobertaProcessing(*ends, add_prefix_space=False)
        tokenizer._tokenizer.post_processor = processor
    return tokenizer, True


def _byte_pairs(library, folder, options, framed):
    spaced = options.get("add_prefix_space", False)
    files = str(folder / WORDS), str(folder / MERGES)
    tokenizer = library.ByteLevelBPETokenizer(*files, add_prefix_space=spaced)
    if (folder / ADDED).is_file():
        added = read_json(folder / ADDED)
        tokenizer.add_special_tokens(sorted(added, key=added.get))
    if framed:
        tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
        tokenizer.add_special_tokens([library.AddedToken("<mask>", lstrip=True)])
        ends = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
        processor = library.processors.RobertaProcessing(*ends, add_prefix_space=spaced)
        tokenizer._tokenizer.post_processor = processor
    return tokenizer, framed


def _residues(library, path):
    """Make ESM's tokenizer: each letter is a token, and so is each run of other characters."""
    pieces = path.read_text(encoding="utf-8").split()
    tokenizer = library.Tokenizer(
        library.models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>")
    )
    letters = "".join(re.escape(piece) for piece in pieces if len(piece) == 1)
    letter = library.Regex(rf"[{letters}]|[^{letters}\s]+")
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence(
        [
            library.pre_tokenizers.WhitespaceSplit(),
            library.pre_tokenizers.Split(letter, "isolated"),
        ]
    )
    tokenizer.add_special_tokens([piece for piece in pieces if re.fullmatch(r"<\w+>", piece)])
    start, end = (tokenizer.token_to_id(token) for token in ("<cls>", "<eos>"))
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="<cls> $A <eos>",
        pair="<cls> $A <eos> $B <eos>",
        special_tokens=[("<cls>", start), ("<eos>", end)],
    )
    return tokenizer


def _fairseq_pieces(library, path, is_camembert):
    """Make XLM-RoBERTa's tokenizer: a SentencePiece model with the special tokens of fairseq.

    CamemBERT's has other tokens in their places, and <s> and </s> after them.
    """
    first, own = (CAMEMBERT, 1) if is_camembert else (FAIRSEQ, 3)
    pieces = [*((x, 0.0) for x in first), *_scored_pieces(path)[own:], ("<mask>", 0.0)]
    tokenizer = _sentence_pieces(library, path, pieces, first.index("<unk>"))
    tokenizer.add_special_tokens([*first, "<s>", "</s>"])
    tokenizer.add_special_tokens([library.AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(x, tokenizer.token_to_id(x)) for x in ("<s>", "</s>")],
    )
    return tokenizer


def _deberta_pieces(library, path, options):
    """Make DeBERTa's tokenizer: a SentencePiece model with BERT's special tokens and a mask."""
    split = options.get("split_by_punct", False)
    require(split is False, "split_by_punct in tokenizer_config.json", split, "false")
    pieces = _scored_pieces(path)
    names = [piece for piece, _ in pieces]
    lowercase = options.get("do_lower_case", False)
    tokenizer = _sentence_pieces(library, path, pieces, names.index("[UNK]"), lowercase)
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, names.index(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _scored_pieces(path):
    processor = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    return [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]


def _sentence_pieces(library, path, pieces, unknown, lowercase=False):
    """Make a tokenizer of these pieces that normalizes texts like the SentencePiece model."""
    model = dict(fields_of(path.read_bytes()))
    kind = dict(fields_of(model.get(2, b""))).get(3, 1)
    require(kind == 1, f"model_type in {path.name}", kind, "1, a unigram model")
    tokenizer = library.Tokenizer(library.models.Unigram(pieces, unknown, byte_fallback=False))
    normalizers = [library.normalizers.Lowercase()] if lowercase else []
    if characters := dict(fields_of(model.get(3, b""))).get(2):  # `precompiled_charsmap`
        normalizers.append(library.normalizers.Precompiled(characters))
    tokenizer.normalizer = library.normalizers.Sequence(normalizers)
    metaspace = dict(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence(
        [library.pre_tokenizers.WhitespaceSplit(), library.pre_tokenizers.Metaspace(**metaspace)]
    )
    tokenizer.decoder = library.decoders.Metaspace(**metaspace)
    return tokenizer
