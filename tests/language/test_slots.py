"""Replies side by side: each is what it is alone, whoever joins, leaves, or shares its prefix."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.language import slot_caches
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.language.slots import Slots
from keras_transformer.models import GPT, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.search import Generation
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import EVERY_CASE, cases

V = 271
SIZES = dict(d_model=12, d_ff=20, num_layers=2, num_heads=2, max_length=80, dropout=0.0)
MODELS = {
    "gpt": (GPT, GPTConfig(V, **SIZES, bos_id=0, eos_id=5)),
    "windowed": (LLaMA, LLaMAConfig(V, **SIZES, num_kv_heads=1, window=6, bos_id=0, eos_id=(5, 9))),
}
GREEDY = Generation(max_new_tokens=12)
DRAWN = Generation(
    max_new_tokens=9, temperature=0.9, top_k=40, top_p=0.95, min_p=0.01, repetition_penalty=1.2
)


@pytest.fixture(scope="module", params=cases(MODELS, "windowed"))
def writer(request, randomize):
    family, config = MODELS[request.param]
    tokenizer = TextTokenizer.train(["To be, or not to be"] * 4, kind="bytes", vocab_size=260)
    return CausalLM(randomize(family(config), scale=2.0), tokenizer)


@pytest.fixture(scope="module")
def compiled_slots(writer):
    return Slots(writer.model, num_slots=3, chunk=8)


@pytest.fixture
def slots(compiled_slots, monkeypatch):
    """Three slots, empty, whose caches will grow."""
    monkeypatch.setattr(slot_caches, "FIRST_PLACES", 32)
    compiled_slots.clear()
    return compiled_slots


def prompts(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(10, V, size).tolist() for size in sizes]


def alone(writer, prompt, search, seed):
    return writer.generate_ids([prompt], search, seed)[0]


def turns(slots, found=None):
    """The tokens of each reply, without its end, and why it ended."""
    found = {} if found is None else found
    ends = {}
    while slots.running:
        for event in slots.turn():
            found.setdefault(event.id, [])
            if event.end != "stop":
                found[event.id].append(event.token)
            if event.end:
                ends[event.id] = event.end
    return found, ends


def test_each_is_what_it_is_alone(writer, slots):
    sizes = [5, 40, 1, 17, 0, 23, 70] if EVERY_CASE else [5, 40, 1, 9, 0]  # of few shapes
    asked = [
        (prompt, search, seed)
        for seed, (prompt, search) in enumerate(
            zip(prompts(sizes), [GREEDY, DRAWN] * 4, strict=False)
        )
    ]
    waiting, ids, found = list(asked), {}, {}
    while waiting or slots.running:
        while waiting and slots.running < 3:
            one = waiting.pop(0)
            ids[slots.join(*one)] = one
        for event in slots.turn():
            found.setdefault(event.id, [])
            if event.end != "stop":
                found[event.id].append(event.token)
    assert len(ids) == len(asked)
    for id, (prompt, search, seed) in ids.items():
        assert found[id] == alone(writer, prompt, search, seed)
    assert len({tuple(x) for x in found.values()}) > 4


@pytest.mark.once("the first test computes under each")
def test_a_prompt_of_several_in_a_call(writer, slots):
    several = prompts([4, 9])
    ids = [slots.join(prompt, DRAWN, [3, i]) for i, prompt in enumerate(several)]
    found, _ = turns(slots)
    assert [found[id] for id in ids] == writer.generate_ids(several, DRAWN, seed=3)


@pytest.mark.once("the first test computes under each")
def test_probabilities_are_the_models(writer, slots):
    (prompt,) = prompts([7])
    events = list(slots.reply(prompt, DRAWN, seed=1, top=3))
    ids = [*prompt, *(event.token for event in events)]
    logits = ops.convert_to_numpy(writer.model({"token_ids": np.array([ids], "int32")}))[0]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for place, event in enumerate(events, start=len(prompt) - 1):
        best = np.argsort(-log_probs[place])[:3]
        assert event.log_prob == pytest.approx(log_probs[place, event.token], abs=1e-4)
        assert [token for token, _ in event.top] == best.tolist()
        np.testing.assert_allclose([x for _, x in event.top], log_probs[place, best], atol=1e-4)


@pytest.mark.once("the first test computes under each")
def test_a_common_prefix_is_read_once(writer, slots, monkeypatch):
    read = []
    caches = slots._caches

    def reading(row, token_ids, index, read_it=caches.read):
        read.append(len(token_ids))
        read_it(row, token_ids, index)

    monkeypatch.setattr(caches, "read", reading)
    begin, first, second, third = prompts([20, 6, 8, 5])
    chat = begin + first
    reply = [x.token for x in slots.reply(chat, GREEDY) if x.end != "stop"]
    assert reply == alone(writer, chat, GREEDY, 0) and sum(read) == 25
    # The chat goes on: all but the last token of the reply is in the slot.
    read.clear()
    longer = chat + reply + second
    assert [x.token for x in slots.reply(longer, GREEDY) if x.end != "stop"] == alone(
        writer, longer, GREEDY, 0
    )
    assert sum(read) <= len(second)
    # Two others begin alike: their beginning is copied, and the chat is kept.
    read.clear()
    others = [begin + third, begin + second + third]
    ids = [slots.join(prompt, GREEDY) for prompt in others]
    reused = {}
    while slots.running:
        reused |= {event.id: event.reused for event in slots.turn()}
    assert reused == dict.fromkeys(ids, 20)
    assert sum(read) == (len(third) - 1) + (len(second) + len(third) - 1)
    read.clear()
    again = [x.token for x in slots.reply(longer + third, GREEDY) if x.end != "stop"]
    assert again == alone(writer, longer + third, GREEDY, 0)
    assert sum(read) <= len(third) + 12


@pytest.mark.once("the first test computes under each")
def test_a_long_prompt_delays_no_reply(slots):
    short, long = prompts([3, 60])
    first = slots.join(short, Generation(max_new_tokens=30, min_new_tokens=29))
    assert [event.id for event in slots.turn()] == [first]
    second = slots.join(long, GREEDY)
    for _ in range(7):  # 56 of the 59 tokens
        assert [event.id for event in slots.turn()] == [first]
    assert [event.id for event in slots.turn()] == [first, second]


@pytest.mark.once("the first test computes under each")
def test_who_leaves_frees_a_slot(writer, slots):
    one, other, third = prompts([5, 6, 40])
    slots.leave(slots.join(third, GREEDY))  # before it has a row
    kept = slots.join(other, GREEDY)
    gone, last = slots.join(one, GREEDY), slots.join(one, GREEDY)
    with pytest.raises(ValueError, match="all num_slots=3 slots are in use"):
        slots.join(third)
    found = []

    def turn():
        for event in slots.turn():
            if event.id == kept and event.end != "stop":
                found.append(event.token)

    turn()
    slots.leave(gone)
    slots.leave(gone)
    late = slots.join(third, GREEDY)
    turn()
    slots.leave(last)
    slots.leave(late)  # its prompt is read in part
    assert slots.running == 1
    while slots.running:
        turn()
    assert found == alone(writer, other, GREEDY, 0)
    again = slots.join(third, GREEDY)
    assert turns(slots)[0][again] == alone(writer, third, GREEDY, 0)


@pytest.mark.once("the first test computes under each")
def test_why_it_ends(writer, slots):
    (prompt,) = prompts([6])
    endless = alone(writer, prompt, Generation(max_new_tokens=6, min_new_tokens=6), 0)
    search = Generation(max_new_tokens=4, min_new_tokens=4)
    *others, last = slots.reply(prompt, search)
    assert [x.token for x in (*others, last)] == endless[:4]
    assert {x.end for x in others} == {None} and last.end == "length"
    own = list(slots.reply(prompt, search, end_ids=[endless[2]]))
    assert own[-1].token == endless[2] and own[-1].end == "stop"
    assert len(own) == 1 + endless.index(endless[2])
    full = list(slots.reply(prompts([78])[0], Generation(min_new_tokens=9)))
    assert len(full) == 2 and full[-1].end == "length"


@pytest.mark.once("checked before a backend computes")
def test_what_is_refused(writer):
    for options, message in (
        (dict(num_slots=0), "num_slots must be a whole number of at least 1"),
        (dict(chunk=0.5), "chunk must be a whole number"),
        (dict(length=81), "length must be at most 80, the model's limit, got 81"),
    ):
        with pytest.raises(ValueError, match=message):
            Slots(writer.model, **options)
    slots = Slots(writer.model, num_slots=2, length=20)
    for arguments, options, message in (
        ([[7] * 20], {}, "prompt_ids must have fewer than 20 tokens, got 20"),
        ([[7, V]], {}, "prompt_ids must be ids of the model's vocabulary"),
        ([[7], Generation(beam_size=2)], {}, "beam_size must be 1"),
        ([[7]], dict(top=21), "top must be at most 20"),
    ):
        with pytest.raises(ValueError, match=message):
            slots.join(*arguments, **options)
    slots.join([7])
    with pytest.raises(ValueError, match="running replies must be 0"):
        next(slots.reply([7]))


def test_a_reply_that_is_not_read_to_its_end_leaves(slots):
    events = slots.reply([7, 8], Generation(min_new_tokens=5))
    next(events)
    events.close()
    assert slots.running == 0 and slots.turn() == []


def test_weights_that_are_no_numbers(randomize):
    family, config = MODELS["gpt"]
    model = randomize(family(config))
    model.embedding.tokens.embeddings.assign(np.full((V, 12), np.nan, "float32"))
    with pytest.raises(ValueError, match="model must give finite logits"):
        list(Slots(model, num_slots=1).reply([7]))
