"""Foreign annotated text: SQuAD, tagged words, alignments, dialogues, preferences, sequences."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.data.dialogues import encode_dialogue
from keras_transformer.data.documents import json_lines
from keras_transformer.data.preferences import read_preferences
from keras_transformer.data.squad import read_squad
from keras_transformer.data.tagged import read_tagged
from tests.fuzz.mutations import DEEP, json_files, lines_of
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("reads text; no tensors")

ASKED = {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
SQUAD = {"data": [{"title": "T", "paragraphs": [{"context": "Ada wrote it.", "qas": [ASKED]}]}]}
PREFERENCE = {"prompt": "Who?", "chosen": "Ada", "rejected": "Bob"}
TURNS = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada"}]
DIALOGUES = [
    {"messages": TURNS},
    {"prompt": "Who?", "completion": "Ada"},
    {"prompt": TURNS[:1], "completion": TURNS[1:]},
]


class Characters:
    """A tokenizer with a token per character."""

    added_ids = (ord("|"),)
    special_names = {}  # noqa: RUF012 - as in a tokenizer

    def encode(self, texts, framed=True):
        return [[ord(x) for x in text] for text in texts]


class Plain:
    """A template of the roles and the texts."""

    def render(self, messages, add_generation_prompt=True, special_names=None):
        from keras_transformer.text.chat_template import checked_messages

        chat = "".join(f"{x['role']}:{x['content']}|" for x in checked_messages(messages))
        return chat + ("assistant:" if add_generation_prompt else "")


@fuzz(150)
@given(json_files(SQUAD))
@example(b'{"data": ' + b"[" * DEEP + b"]" * DEEP + b"}")
def test_squad(room, content):
    (path := room / "squad.json").write_bytes(content)
    for asked in outcome("SQuAD", read_squad, path) or ():
        assert all(isinstance(x, str) for x in (asked.id, asked.question, asked.context))


@fuzz(100)
@given(lines_of(["A\tDET", "dog\tNOUN", "", "\tX", "a\t"], ["\t", "\0", "a", " ", "\x85"]))
def test_tagged(room, content):
    (path := room / "tagged.tsv").write_bytes(content)
    outcome("tagged words", read_tagged, path)


@fuzz(120)
@given(st.lists(json_files(PREFERENCE), min_size=1, max_size=3))
@example([b'{"prompt": %s}' % (b"9" * 5000)])
def test_preferences(room, lines):
    (path := room / "preferences.jsonl").write_bytes(b"\n".join(lines))
    outcome("preferences", read_preferences, path)


@fuzz(200)
@given(st.sampled_from(DIALOGUES).flatmap(json_files))
def test_dialogues(room, line):
    (path := room / "dialogues.jsonl").write_bytes(line)

    def read():
        return [encode_dialogue(x, Characters(), Plain(), 0) for _, x in json_lines(path)]

    outcome("dialogues", read)
