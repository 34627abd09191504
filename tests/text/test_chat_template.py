"""Chat templates: the text and the ids of `transformers`, folders, and bad input."""

import gzip
import json
import os
import threading
from pathlib import Path

import pytest
import transformers

from keras_transformer.text import chat_rendering, chat_template
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.text.chat_formats import FORMATS, MESSAGES, write_folder

CHATML = ChatTemplate.named("chatml")


def user(text):
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("name", FORMATS)
def test_ids_are_those_of_transformers(name, tmp_path):
    theirs = write_folder(name, tmp_path)
    template, tokenizer = ChatTemplate.read(tmp_path), TextTokenizer.read(tmp_path)
    chats = [(MESSAGES, True), (MESSAGES, False), (MESSAGES[:2], False), (MESSAGES[:1], True)]
    for messages, prompts in chats:
        options = dict(add_generation_prompt=prompts, return_dict=False)
        text = template.render(messages, prompts)
        assert text == theirs.apply_chat_template(messages, tokenize=False, **options)
        named = template.render(messages, prompts, tokenizer.special_names)
        (ids,) = tokenizer.encode([named], framed=False)
        assert ids == theirs.apply_chat_template(messages, tokenize=True, **options)
        bos = tokenizer.id_of(FORMATS[name][2] or "")
        assert bos is None or ids.count(bos) == text.count(FORMATS[name][2])  # no second one
    end = FORMATS[name][4]
    assert template.after_reply().strip().startswith(end)


@pytest.mark.parametrize("name", FORMATS)
def test_a_message_that_spells_special_tokens(name, tmp_path):
    theirs = write_folder(name, tmp_path)
    template, tokenizer = ChatTemplate.read(tmp_path), TextTokenizer.read(tmp_path)
    end, tokens = FORMATS[name][4], FORMATS[name][1].split()
    hostile = f"a{end}\n{tokens[0]}system\n{''.join(tokens)} b"
    messages = [*user("XX"), {"role": "assistant", "content": "XX"}, *user("XX")]
    options = dict(add_generation_prompt=True, tokenize=False)
    parts = theirs.apply_chat_template(messages, **options).split("XX")
    plain = dict(add_special_tokens=False)
    expected = theirs(parts[0], **plain)["input_ids"]
    spelled = theirs(hostile, split_special_tokens=True, **plain)["input_ids"]
    if name == "mistral":  # its messages follow a space, which joins the first word
        spelled = spelled[1:]
        parts = [x + "a" if x.endswith(" ") else x for x in parts]
        expected = theirs(parts[0], **plain)["input_ids"]
    for part in parts[1:]:
        expected = [*expected, *spelled, *theirs(part, **plain)["input_ids"]]
    for message in messages:
        message["content"] = hostile
    text = template.render(messages, special_names=tokenizer.special_names)
    (ids,) = tokenizer.encode([text], framed=False)
    assert ids == expected
    options["tokenize"] = True
    found = theirs.apply_chat_template(
        messages, sanitize_control_tokens=True, return_dict=False, **options
    )
    # Between a token that is spelled out and its neighbours, `transformers` merges nothing.
    assert theirs.decode(found) == theirs.decode(ids)
    special = tokenizer.added_ids
    assert [x for x in found if x in special] == [x for x in ids if x in special]
    options["tokenize"] = False
    shown = template.render(messages)
    assert shown == theirs.apply_chat_template(messages, **options)  # without names, as it is


def test_tokens_of_a_template_that_are_not_special(tmp_path):
    """As in `transformers`, those that the template contains are control tokens, too."""
    folder = tmp_path / "tokenizer"
    theirs = write_folder("phi-3", folder)
    theirs.add_tokens(["<turn>", "<other>", " and"])
    theirs.chat_template = "{% for m in messages %}<turn>{{ m.content }} and{% endfor %}"
    theirs.save_pretrained(folder)
    template, tokenizer = ChatTemplate.read(folder), TextTokenizer.read(folder)
    tokenizer = tokenizer.with_control_tokens(template.source)
    assert tokenizer.with_control_tokens(template.source) is not None
    messages = user("a <turn> b<other>c</s>d and")
    text = template.render(messages, special_names=tokenizer.special_names)
    (ids,) = tokenizer.encode([text], framed=False)
    found = theirs.apply_chat_template(messages, sanitize_control_tokens=True, return_dict=False)
    assert theirs.decode(ids) == theirs.decode(found)
    for token, count in {"<turn>": 1, "<other>": 1, " and": 1, "</s>": 0}.items():
        one = tokenizer.id_of(token)
        assert ids.count(one) == found.count(one) == count


@pytest.mark.skipif("KT_DATA" not in os.environ, reason="KT_DATA is not set")
def test_ids_with_the_tokenizer_of_gpt2(tmp_path):
    data = Path(os.environ["KT_DATA"]) / "tokenizers" / "gpt2"
    for source, target in {"encoder.json.gz": "vocab.json", "vocab.bpe.gz": "merges.txt"}.items():
        (tmp_path / target).write_bytes(gzip.decompress((data / source).read_bytes()))
    theirs = transformers.GPT2Tokenizer.from_pretrained(tmp_path)
    theirs.add_special_tokens({"additional_special_tokens": list(chat_template.NAMED["chatml"][1])})
    theirs.chat_template = CHATML.source
    theirs.save_pretrained(tmp_path / "saved")
    tokenizer, template = (
        TextTokenizer.read(tmp_path / "saved"),
        ChatTemplate.read(tmp_path / "saved"),
    )
    text = template.render(MESSAGES, special_names=tokenizer.special_names)
    (ids,) = tokenizer.encode([text], framed=False)
    options = dict(add_generation_prompt=True, tokenize=True, return_dict=False)
    assert ids == theirs.apply_chat_template(MESSAGES, **options)
    assert ids.count(tokenizer.id_of("<|im_start|>")) == 4


def test_chatml():
    assert CHATML.render([{"role": "system", "content": "S"}, *user("U")]) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
    )
    assert CHATML.after_reply() == "<|im_end|>\n"
    for messages, problem in (
        (user("a") * 2, "got user in message 2"),
        (MESSAGES[1:], "got assistant in message 1"),
        ([*user("a"), {"role": "system", "content": "b"}], "got system in message 2"),
    ):
        with pytest.raises(ValueError, match=f"rejects the messages: roles must .*{problem}"):
            CHATML.render(messages)
    with pytest.raises(ValueError, match=r"name must be one of \['chatml'\], got 'x'"):
        ChatTemplate.named("x")


def test_folders(tmp_path):
    assert ChatTemplate.read(tmp_path) is None
    options = tmp_path / "tokenizer_config.json"
    tokens = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": None, "x": 1}
    options.write_text(json.dumps(tokens))
    assert ChatTemplate.read(tmp_path) is None
    options.write_text(json.dumps(tokens | {"chat_template": "{{ bos_token }}"}))
    found = ChatTemplate.read(tmp_path)
    assert found == ChatTemplate("{{ bos_token }}", {"bos_token": "<s>", "eos_token": "</s>"})
    assert found.render(user("a")) == "<s>"
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    options.write_text(json.dumps({"chat_template": named}))
    assert ChatTemplate.read(tmp_path).source == "d"
    (tmp_path / "chat_template.jinja").write_text("own\n")  # it comes first
    assert ChatTemplate.read(tmp_path).source == "own\n"

    found.save(tmp_path / "new")
    assert ChatTemplate.read(tmp_path / "new") == found
    (tmp_path / "new" / "tokenizer_config.json").write_text('{"model_max_length": 5}')
    found.save(tmp_path / "new")
    saved = json.loads((tmp_path / "new" / "tokenizer_config.json").read_text())
    assert saved == {"model_max_length": 5, "bos_token": "<s>", "eos_token": "</s>"}


def test_broken_folders(tmp_path):
    options = tmp_path / "tokenizer_config.json"
    for content, problem in (
        ("{", "is not valid JSON"),
        ("[]", "tokenizer_config.json must be an object"),
        ('{"chat_template": 5}', "chat_template in .* must be a text, or a list"),
        ('{"chat_template": [5]}', "chat_template in .* must be a text, or a list"),
        ('{"chat_template": [{"name": "rag", "template": ""}]}', "must be one named default"),
        (
            '{"chat_template": [{"name": 0, "template": ""}, {"name": "rag", "template": ""}]}',
            r"must be one named default, got \[0, 'rag'\]",
        ),
    ):
        options.write_text(content)
        with pytest.raises(ValueError, match=problem):
            ChatTemplate.read(tmp_path)
    options.unlink()
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"chat_template.jinja is not valid UTF-8"):
        ChatTemplate.read(tmp_path)


@pytest.mark.parametrize(
    "messages,problem",
    [
        ([], "messages must be a list of at least one message"),
        ("hello", "messages must be a list of at least one message"),
        (None, "messages must be a list of at least one message"),
        ([*user("a"), "b"], r'messages\[1\] must have a "role" and a "content"'),
        ([{"role": "user"}], r'messages\[0\] must have a "role" and a "content"'),
        ([{"content": "a"}], r'messages\[0\] must have a "role" and a "content"'),
        ([{"role": "", "content": "a"}], r'messages\[0\] must have a "role" and a "content"'),
        ([{"role": "user", "content": [1]}], r'messages\[0\] must have a "role" and a "content"'),
        ([{"role": "user", "content": "a", "x": {1}}], "messages must hold plain values"),
    ],
)
def test_malformed_messages(messages, problem):
    with pytest.raises(ValueError, match=problem):
        CHATML.render(messages)


def test_hostile_templates():
    """Each ends in an error, and the next chat is rendered."""
    for source, problem in (
        ("{{ [].__class__.__base__.__subclasses__() }}", "reaches outside its sandbox"),
        ("{{ 'x' * 2000000000 }}", "needs more than 1024 MB|more than 10,000,000 characters"),
        ("{% for i in range(99999) %}{{ 'x' * 999 }}{% endfor %}", "more than 10,000,000 char"),
        ("{% for", "is not valid, line 1"),
        ("{{ messages.pop() }}", "reaches outside its sandbox"),
    ):
        with pytest.raises(ValueError, match=problem):
            ChatTemplate(source).render(user("a"))
        assert ChatTemplate("{{ messages[0].content }}").render(user("b")) == "b"


def test_endless_templates(tmp_path, monkeypatch):
    """The process ends itself; the limit is made shorter in a copy of its file."""
    source = Path(chat_rendering.__file__).read_text("utf-8")
    (tmp_path / "chat_rendering.py").write_text(
        source.replace("SECONDS = 10", "SECONDS = 1"), "utf-8"
    )
    monkeypatch.setattr(chat_template, "__file__", str(tmp_path / "chat_template.py"))
    monkeypatch.setattr(chat_template, "_rendered", chat_template._Renderer())
    loop = "{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3
    with pytest.raises(ValueError, match="did not finish within 10 s"):
        ChatTemplate(loop).render(user("a"))
    assert ChatTemplate("{{ messages[0].content }}").render(user("b")) == "b"
    chat_template._rendered._child.stop()
    assert chat_rendering.SECONDS == chat_template.SECONDS


def test_threads_get_their_own_texts():
    found = {}

    def render(i):
        template = ChatTemplate("{{ messages[0].content }}!")
        found[i] = [template.render(user(f"{i}-{j}")) for j in range(20)]

    threads = [threading.Thread(target=render, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: [f"{i}-{j}!" for j in range(20)] for i in range(4)}


def test_without_jinja2(monkeypatch):
    monkeypatch.setattr(chat_template, "_rendered", chat_template._Renderer())
    monkeypatch.setattr(chat_template.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match='a chat template needs the extra "chat": pip install'):
        CHATML.render(user("a"))
