"""Conversion of vocabulary files of checkpoints (encoders, GPT-2, Whisper) to `tokenizer.json`."""

from __future__ import annotations

import re
from pathlib import Path

import sentencepiece

from keras_transformer.config import require
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text.pieces import fields_of
from keras_transformer.text.text_tokenizer_training import library

WORDS, MERGES, LINES = "vocab.json", "merges.txt", "vocab.txt"
PIECES, DEBERTA_PIECES, T5_PIECES = "sentencepiece.bpe.model", "spm.model", "spiece.model"
# Model types whose byte-pair tokenizers put texts between <s> and </s>.
FRAMED = ("bart", "data2vec-text", "roberta", "xlm-roberta")
# Special tokens of an MPNet: WordPieces like BERT's, but the special tokens of RoBERTa.
MPNET = dict(cls_token="<s>", sep_token="</s>", pad_token="<pad>", mask_token="<mask>")
CAMEMBERT = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED")
# For each tokenizer class of `transformers` whose vocabulary files are read, a `model_type` with
# such files.
KINDS = {
    "BartTokenizer": "bart", "BertTokenizer": "bert", "CamembertTokenizer": "camembert",
    "DebertaV2Tokenizer": "deberta-v2", "DistilBertTokenizer": "bert",
    "ElectraTokenizer": "bert", "EsmTokenizer": "esm", "GPT2Tokenizer": "gpt2",
    "MPNetTokenizer": "mpnet", "RobertaTokenizer": "roberta", "T5Tokenizer": "mt5",
    "WhisperTokenizer": "whisper", "XLMRobertaTokenizer": "xlm-roberta",
}  # fmt: skip
MOST_GAPS = 100_000  # maximum number of ids without a piece
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")  # these replace the first three SentencePiece pieces


def read_vocabulary(folder: Path, name: str | None, kind: str | None) -> tuple[bytes, str, bool]:
    """Make the content of a `tokenizer.json` from the vocabulary files of a folder.

    Args:
        folder: Folder with `vocab.json` and `merges.txt`; `vocab.txt`; `sentencepiece.bpe.model`
            of an XLM-RoBERTa or a CamemBERT; `spm.model` of a DeBERTa; or `spiece.model` of an mT5.
        name: The class of the tokenizer in `transformers`, which determines the splitting of texts
            and the special tokens. None: `kind` determines them.
        kind: The `model_type` of the model; used if `name` is None. None: as for GPT-2 if there is
            a `vocab.json`, else as for BERT.

    Returns:
        The content of the `tokenizer.json`, the tokenizer class, and whether texts get special
        tokens around them.

    Raises:
        FileNotFoundError: If there is no vocabulary, or the class needs a `tokenizer.json`.
        ValueError: If a file cannot be read.
    """
    if name is not None and name not in KINDS:
        raise FileNotFoundError(
            f"{folder} has no tokenizer.json, which a {name} needs: save the tokenizer with "
            "`transformers`, which writes one"
        )
    try:
        parts = _from_files(library(), folder, KINDS[name] if name else kind)
    except Exception as error:  # the library raises plain Exception
        raise ValueError(f"the vocabulary in {folder} cannot be read: {error}") from error
    if parts is None:
        raise FileNotFoundError(
            f"{folder} holds no tokenizer: there is neither tokenizer.json, nor vocab.json with "
            "merges.txt, nor vocab.txt, nor sentencepiece.bpe.model of an XLM-RoBERTa or a "
            "CamemBERT, nor spm.model of a DeBERTa, nor spiece.model of an mT5"
        )
    tokenizer, usual, framed = parts
    ids = tokenizer.get_vocab().values()
    largest, most = max(ids, default=0), len(ids) + MOST_GAPS
    require(largest < most, f"ids of the vocabulary in {folder}", largest, f"below {most:,}")
    return tokenizer.to_str().encode(), name or usual, framed


def _from_files(library, folder, kind):
    """Return a tokenizer, its class, and whether texts get special tokens.

    Return None if the folder has no vocabulary files of this kind.
    """
    if (folder / WORDS).is_file() and (folder / MERGES).is_file():
        framed = kind in FRAMED
        return _byte_pairs(library, folder, framed), "GPT2Tokenizer", framed
    if kind in ("camembert", "xlm-roberta") and (folder / PIECES).is_file():
        made = _fairseq_pieces(library, folder / PIECES, kind == "camembert")
        return made, "XLMRobertaTokenizer", True
    if kind == "deberta-v2" and (folder / DEBERTA_PIECES).is_file():
        return _deberta_pieces(library, folder / DEBERTA_PIECES), "DebertaV2Tokenizer", True
    if kind == "mt5" and (folder / T5_PIECES).is_file():
        return _t5_pieces(library, folder / T5_PIECES), "T5Tokenizer", True
    if not (folder / LINES).is_file():
        return None
    if kind == "esm":
        return _residues(library, folder / LINES), "EsmTokenizer", True
    if kind == "mpnet":
        words = library.BertWordPieceTokenizer(str(folder / LINES), **MPNET)
        return _in_signs(library, words), "MPNetTokenizer", True
    return library.BertWordPieceTokenizer(str(folder / LINES)), "BertTokenizer", True


def _byte_pairs(library, folder, framed):
    """Make a byte-level tokenizer of GPT-2, or of RoBERTa if `framed`."""
    tokenizer = library.ByteLevelBPETokenizer(str(folder / WORDS), str(folder / MERGES))
    if framed:
        tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    return _in_signs(library, tokenizer) if framed else tokenizer


def _in_signs(library, tokenizer):
    """Add the token <mask>, and put texts between <s> and </s>, as in RoBERTa."""
    tokenizer.add_special_tokens([library.AddedToken("<mask>", lstrip=True)])
    ends = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    processor = library.processors.RobertaProcessing(*ends, add_prefix_space=False)
    tokenizer._tokenizer.post_processor = processor
    return tokenizer


def _residues(library, path):
    """Make ESM's tokenizer: each known letter is a token; a run of others is one unknown token."""
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
    return _framed(library, tokenizer, "<cls> $A <eos>", "<cls> $A <eos> $B <eos>")


def _framed(library, tokenizer, single, pair):
    """Put special tokens around texts and pairs, by templates such as "<s> $A </s>"."""
    first, _, last = single.split()
    special = [(token, tokenizer.token_to_id(token)) for token in (first, last)]
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=special
    )
    return tokenizer


def _fairseq_pieces(library, path, is_camembert):
    """Make XLM-RoBERTa's tokenizer: a SentencePiece model with the special tokens of fairseq.

    CamemBERT's has other tokens (`CAMEMBERT`) instead, and <s> and </s> in the SentencePiece model.
    """
    first, skipped = (CAMEMBERT, 1) if is_camembert else (FAIRSEQ, 3)
    pieces = [*((x, 0.0) for x in first), *_scored_pieces(path)[skipped:], ("<mask>", 0.0)]
    tokenizer = _sentence_pieces(library, path, pieces, first.index("<unk>"))
    tokenizer.add_special_tokens([*first, "<s>", "</s>"])
    tokenizer.add_special_tokens([library.AddedToken("<mask>", lstrip=True)])
    return _framed(library, tokenizer, "<s> $A </s>", "<s> $A </s> </s> $B </s>")


def _deberta_pieces(library, path):
    """Make DeBERTa's tokenizer: a SentencePiece model with BERT's special tokens and a mask."""
    pieces = _scored_pieces(path)
    names = [piece for piece, _ in pieces]
    tokenizer = _sentence_pieces(library, path, pieces, names.index("[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    return _framed(library, tokenizer, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")


def _t5_pieces(library, path):
    """Make mT5's tokenizer: a SentencePiece model, with </s> after each text."""
    pieces = _scored_pieces(path)
    tokenizer = _sentence_pieces(library, path, pieces, [x for x, _ in pieces].index("<unk>"))
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    ends = [("</s>", tokenizer.token_to_id("</s>"))]
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=ends
    )
    return tokenizer


def _scored_pieces(path):
    processor = sentencepiece.SentencePieceProcessor(model_proto=read_bytes(path))
    return [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]


def _sentence_pieces(library, path, pieces, unknown):
    """Make a unigram tokenizer that normalizes texts like a SentencePiece model.

    Args:
        library: The module `tokenizers`.
        path: The SentencePiece model.
        pieces: Pieces with their scores, in the order of ids.
        unknown: Id of the unknown piece.
    """
    model = dict(fields_of(read_bytes(path)))
    kind = dict(fields_of(model.get(2, b""))).get(3, 1)
    require(kind == 1, f"model_type in {path.name}", kind, "1, a unigram model")
    tokenizer = library.Tokenizer(library.models.Unigram(pieces, unknown, byte_fallback=False))
    normalizers = []
    if characters := dict(fields_of(model.get(3, b""))).get(2):  # `precompiled_charsmap`
        normalizers.append(library.normalizers.Precompiled(characters))
    tokenizer.normalizer = library.normalizers.Sequence(normalizers)
    metaspace = dict(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence(
        [library.pre_tokenizers.WhitespaceSplit(), library.pre_tokenizers.Metaspace(**metaspace)]
    )
    tokenizer.decoder = library.decoders.Metaspace(**metaspace)
    return tokenizer
