"""Questions and where their answers are."""

import gzip
import json

import pytest

from keras_transformer.data.squad import Question, read_squad, span_of, with_shared_words
from keras_transformer.text.text_tokenizer import TextTokenizer

CONTEXT = "The Normans were in Normandy, a region in France, in the 10th century."
FILE = {
    "data": [
        {
            "title": "Normans",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "1",
                            "question": "Where?",
                            "answers": [{"text": "France", "answer_start": 42}],
                        },
                        {"id": "2", "question": "Who else?", "answers": []},
                    ],
                }
            ],
        }
    ]
}


def test_reading(tmp_path):
    expected = [
        Question("1", "Normans", "Where?", CONTEXT, (("France", 42),)),
        Question("2", "Normans", "Who else?", CONTEXT, ()),
    ]
    (tmp_path / "x.json").write_text(json.dumps(FILE))
    assert read_squad(tmp_path / "x.json") == expected
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(json.dumps(FILE).encode()))
    assert read_squad(tmp_path / "x.json.gz") == expected
    for broken in ("{", "[]", '{"data": [{}]}'):
        (tmp_path / "x.json").write_text(broken)
        with pytest.raises(ValueError, match="x.json is not a SQuAD file"):
            read_squad(tmp_path / "x.json")


def test_pieces_of_an_answer():
    tokenizer = TextTokenizer.train([CONTEXT], "wordpiece", 60)
    ((ids, types, places),) = tokenizer.encode_pairs([("Where?", CONTEXT)], 200)
    assert len(ids) == len(types) == len(places)
    assert ids[0] == tokenizer.id_of("[CLS]") and ids[-1] == tokenizer.id_of("[SEP]")
    assert [(first >= 0) for first, _ in places] == [t == 1 for t in types[:-1]] + [False]
    for answer in ("France", "in Normandy, a region", "The Normans", "century."):
        begin = CONTEXT.index(answer)
        first, last = span_of(places, (answer, begin))
        assert CONTEXT[places[first][0] : places[last][1]] == answer
    room = ids.index(tokenizer.id_of("[SEP]")) + 12
    ((cut, _, places),) = tokenizer.encode_pairs([("Where?", CONTEXT)], room)
    assert len(cut) == room
    assert span_of(places, ("century.", CONTEXT.index("century."))) is None
    assert span_of(places, ("The", 0)) is not None


def test_answers_elsewhere_and_broken_files(tmp_path):
    moved = json.dumps(FILE).replace("42", "41")
    (tmp_path / "x.json").write_text(moved)
    with pytest.raises(ValueError, match="answer to '1' must be at character 41 .*'France'"):
        read_squad(tmp_path / "x.json")
    (tmp_path / "x.json").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="x.json is not a SQuAD file"):
        read_squad(tmp_path / "x.json")
    (tmp_path / "x.json.gz").write_bytes(b"{}")
    with pytest.raises(ValueError, match="x.json.gz: truncated or corrupt gzip file"):
        read_squad(tmp_path / "x.json.gz")


def test_shared_words_are_those_of_the_question_in_the_passage():
    ids, types = [9, 1, 2, 8, 3, 2, 2, 8], [0, 0, 0, 0, 1, 1, 1, 1]  # 9: [CLS], 8: [SEP]
    places = [(-1, -1)] * 4 + [(0, 1), (2, 3), (4, 5), (-1, -1)]
    assert with_shared_words(ids, types, places) == [0, 0, 0, 0, 1, 2, 2, 1]
