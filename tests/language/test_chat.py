"""Chats: the replies of `transformers`, where they end, folders, and what is too long."""

import keras
import pytest
import torch

from keras_transformer import CausalLM, load_pretrained
from keras_transformer.language.chat import Chat
from keras_transformer.text.chat_template import ChatTemplate
from tests.backends import cases
from tests.language.chats import chat_folder, end_of_turn

USER = [{"role": "user", "content": "and then"}]
SHORT = dict(max_new_tokens=12)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The model and tokenizer of `transformers`, and ours, read from their folder."""
    folder = tmp_path_factory.mktemp("assistant")
    model, tokenizer = chat_folder(folder, "phi-3")
    return model, tokenizer, Chat(CausalLM.from_pretrained(folder))


def expected(model, tokenizer, messages, ends, count=12):
    options = dict(add_generation_prompt=True, return_dict=False)
    ids = tokenizer.apply_chat_template(messages, tokenize=True, **options)
    with torch.no_grad():
        found = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False, max_new_tokens=count, eos_token_id=ends,
        )[0, len(ids) :].tolist()  # fmt: skip
    return found


def test_replies_are_those_of_transformers(parts):
    model, tokenizer, chat = parts
    turns = list(USER)
    for question in ("Who?", "wrote Hamlet"):
        ids = expected(model, tokenizer, turns, list(chat.ends))
        reply = chat.reply(turns, **SHORT)
        assert reply == tokenizer.decode(ids, skip_special_tokens=True)
        assert "".join(chat.stream(turns, **SHORT)) == reply
        reply = reply.strip() or "nothing"
        turns += [{"role": "assistant", "content": reply}, {"role": "user", "content": question}]
    chats = [USER, turns[:1], turns]
    together = chat.replies(chats, **SHORT)
    assert together == [chat.reply(one, **SHORT) for one in chats]
    draws = dict(temperature=0.9, top_p=0.9, seed=5, **SHORT)
    assert chat.replies([USER], **draws) == [chat.reply(USER, **draws)]


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_chat_that_goes_on_is_not_read_again(parts, monkeypatch):
    chat = Chat(parts[2].writer)
    read = []
    caches = chat._slots._caches
    monkeypatch.setattr(caches, "read", lambda *x, run=caches.read: [read.append(x), run(*x)])
    reply = chat.reply(USER, **SHORT)
    turns = [*USER, {"role": "assistant", "content": reply}, {"role": "user", "content": "Who?"}]
    first = sum(len(ids) for _, ids, _ in read)
    assert chat.reply(turns, **SHORT) == Chat(chat.writer).reply(turns, **SHORT)
    again = sum(len(ids) for _, ids, _ in read) - first
    assert first == len(chat.encode(USER)) - 1
    assert again < len(chat.encode(turns)) - first


@pytest.mark.once("texts: the replies above are those of each backend")
def test_prompts_that_spell_special_tokens(parts):
    """Spelled out, unless asked for; as `transformers` does either."""
    model, tokenizer, chat = parts
    prompt = "and<|end|>then</s>"
    found = []
    for parse_special in (False, True):
        ids = tokenizer(prompt, split_special_tokens=not parse_special)["input_ids"]
        assert (tokenizer.convert_tokens_to_ids("<|end|>") in ids) == parse_special
        with torch.no_grad():
            ids = model.generate(
                torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                do_sample=False, max_new_tokens=6,
            )[0, len(ids) :]  # fmt: skip
        found.append(tokenizer.decode(ids, skip_special_tokens=True))
        options = dict(parse_special=parse_special, max_new_tokens=6)
        assert chat.writer.generate([prompt], **options) == [found[-1]]
        assert "".join(chat.writer.stream(prompt, **options)) == found[-1]
    assert found[0] != found[1]


def test_two_replies_at_once(parts):
    chat = parts[2]
    expected = chat.reply(USER, **SHORT)
    first, second = chat.stream(USER, **SHORT), chat.stream(USER, **SHORT)
    begun = next(first)
    assert "".join(second) == expected
    assert begun + "".join(first) == expected


@pytest.mark.once("texts: the replies above are those of each backend")
@pytest.mark.parametrize("name", cases(["llama-3", "phi-3", "gemma"], "phi-3"))
def test_a_reply_ends_with_its_turn(name, tmp_path):
    model, tokenizer = chat_folder(tmp_path, name)
    chat = Chat(CausalLM.from_pretrained(tmp_path))
    end = end_of_turn(name, tokenizer)
    assert set(chat.ends) == {end, model.config.eos_token_id}
    # The model is made to end its turn at once, or after one token.
    for first in (True, False):
        ids = expected(model, tokenizer, USER, [])
        token = ids[0] if first else ids[1]
        if token in chat.ends:
            continue
        chat.ends = (*chat.ends, token)
        (text,) = chat.writer.tokenizer.decode([ids[: ids.index(token)]])
        assert chat.reply(USER, **SHORT) == text == chat.replies([USER], **SHORT)[0]
        chat.ends = chat.ends[:-1]


@pytest.mark.once("texts: the replies above are those of each backend")
def test_stop_and_options(parts):
    _, _, chat = parts
    reply = chat.reply(USER, **SHORT)
    mark = reply[2:4]
    assert chat.reply(USER, stop=[mark], **SHORT) == reply[: reply.index(mark)]
    assert chat.replies([USER], stop=[mark], **SHORT) == [reply[: reply.index(mark)]]
    with pytest.raises(TypeError, match="beam_size is not an option here"):
        chat.reply(USER, beam_size=2)
    with pytest.raises(ValueError, match="temperature must be at least 0"):
        chat.reply(USER, temperature=-1)


@pytest.mark.once("files and texts: no tensor differs")
def test_folders_keep_the_template(parts, tmp_path):
    _, _, chat = parts
    chat.writer.save(tmp_path / "saved")
    again = Chat.load(tmp_path / "saved")
    assert again.template == chat.template and again.ends == chat.ends
    assert again.encode(USER) == chat.encode(USER)
    # A model without one replaces it: the old template must not be taken for the new model's.
    CausalLM(chat.writer.model, chat.writer.tokenizer).save(tmp_path / "saved")
    assert CausalLM.load(tmp_path / "saved").template is None
    with pytest.raises(ValueError, match=r"saved: the model has no chat template \(chat_templa"):
        Chat.load(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"^.*absent is not a saved language model"):
        Chat.load(tmp_path / "absent")


@pytest.mark.once("files and texts: no tensor differs")
def test_imported_folders_keep_the_template(tmp_path):
    chat_folder(tmp_path / "theirs", "gemma")
    load_pretrained(tmp_path / "theirs").save(tmp_path / "ours")
    chat = Chat.load(tmp_path / "ours")
    assert chat.template == ChatTemplate.read(tmp_path / "theirs")
    with pytest.raises(ValueError, match="rejects the messages: Conversation roles must altern"):
        chat.reply(USER * 2)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="one search is enough")
def test_long_chats(parts):
    _, _, chat = parts
    long = [{"role": "user", "content": "犬" * 40}]
    with pytest.raises(ValueError, match=r"fewer than 96 tokens together, .* got \d+: leave out"):
        chat.reply(long)
    # A reply ends where the positions end.
    almost = [{"role": "user", "content": "and then " * 5}]
    room = 96 - len(chat.encode(almost))
    chat.ends = ()
    ids = list(chat._tokens(chat.encode(almost), None, 0))
    assert len(ids) == min(room, 100)
