"""SentencePiece models of words: each word is a piece, also where neighbours are unknown."""

import pytest
import sentencepiece

from keras_transformer.text.pieces import SPACE, SentencePieces
from keras_transformer.text.word_model import is_word_model, word_model
from tests.text.sentences import trained

PIECES = ["</s>", "<unk>", f"{SPACE}one", f"{SPACE}two,", f"{SPACE}é"]


@pytest.mark.once("plain Python")
def test_words_are_pieces():
    model = word_model(PIECES, "<unk>", "</s>")
    assert is_word_model(model) and not is_word_model(trained().source_model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert processor.encode("two, é  one") == [3, 4, 2]
    assert processor.unk_id() == 1 and processor.eos_id() == 0 and processor.bos_id() == -1
    pieces = SentencePieces(model, PIECES, 1)
    assert pieces.encode("one  x y two, ") == [2, 1, 1, 3]
    assert pieces.offsets("one  x") == [(0, 3), (5, 6)]
    assert pieces.decode([2, 3, 4]) == "one two, é"
