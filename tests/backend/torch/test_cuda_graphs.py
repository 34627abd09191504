"""Recorded searches give what others do: on a processor the record repeats the calls themselves."""

import warnings

import keras
import numpy as np
import pytest
import torch

from keras_transformer.backend.torch.cuda_graphs import RecordedSearch
from keras_transformer.backend.torch.recorder import NotRecordableError, Recorder
from keras_transformer.decoding import uniforms
from keras_transformer.models import (
    GPT,
    T5,
    Ensemble,
    GPTConfig,
    LLaMA,
    LLaMAConfig,
    T5Config,
    enable_lora,
)
from keras_transformer.running.search_functions import generation_loop, translation_loop
from keras_transformer.search import Generation, Search

SOURCE = np.array([[4, 7, 5, 3], [8, 9, 10, 3], [6, 3, 0, 0]], "int32")
LIMITS = np.array([40, 5, 40], "int32")
PROMPTS = np.array([[4, 5, 6, 7], [1, 9, 10, 11]], "int32")
SEGMENTS = np.array([[1, 1, 1, 1], [0, 1, 1, 1]], "int32")
EXTRA = 40  # so that attention covers 16, 32 and 64 positions


class Repeated(Recorder):
    """Repeats the calls of a function."""

    def __init__(self, most=1 << 30):
        super().__init__()
        self.most, self.records = most, 0

    def _most_bytes(self):
        return self.most

    def _record(self, function):
        self.records += 1
        function()
        return function


@pytest.fixture(params=["repeated", "gpu"])
def recorder(request):
    if request.param == "repeated":
        return Repeated()
    if not torch.cuda.is_available():
        pytest.skip("records CUDA graphs on a GPU")
    return Recorder()


def tensors(*arrays):
    return [None if x is None else keras.ops.convert_to_tensor(x) for x in arrays]


@pytest.fixture
def same(recorder):
    """Checks that a recorded search finds what the plain one does, twice."""

    def check(begin, model, *arrays, atol=1e-4):
        with torch.no_grad():
            ids, scores = begin(*tensors(*arrays)).run()
            search = RecordedSearch(begin, lambda: model.variables, recorder)
            for _ in range(2):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found_ids, found_scores = search(*tensors(*arrays))
                places = min(ids.shape[-1], found_ids.shape[-1])
                assert (ids[..., :places] == found_ids[..., :places]).all()
                torch.testing.assert_close(found_scores, scores, atol=atol, rtol=1e-4)
        assert len(np.unique(ids.cpu())) > 2
        return search

    return check


SEARCHES = [
    Search(4, 0.6, max_extra_length=EXTRA),
    Search(1, 0.0, max_extra_length=EXTRA),
    Search(3, 0.0, max_extra_length=EXTRA, no_repeat_ngram_size=2),
    Search(3, 1.0, max_extra_length=EXTRA, repetition_penalty=1.3, min_length=5),
    Search(4, 1.0, max_extra_length=EXTRA, diversity_rate=0.5, num_hypotheses=2),
    Search(2, 1.0, max_extra_length=EXTRA, scoring="transformers"),
]


@pytest.mark.parametrize("number", range(len(SEARCHES)))
def test_translation(number, same, tiny_transformer):
    model, search = tiny_transformer(scale=1.0, max_length=64), SEARCHES[number]
    same(translation_loop(search, model), model, SOURCE, LIMITS)


def test_prefixes_and_samples(same, tiny_transformer):
    model = tiny_transformer(scale=1.0, max_length=64, positions="learned", norm_first=True)
    prefix = np.array([[9, 0], [9, 8], [0, 0]], "int32")
    same(translation_loop(Search(2, 0.6, max_extra_length=EXTRA), model), model, SOURCE, LIMITS,
         prefix)  # fmt: skip
    numbers = uniforms([[0], [1], [2]], SOURCE.shape[1] + EXTRA)
    search = Search(1, 0.0, temperature=1.0, top_k=5, top_p=0.9, max_extra_length=EXTRA)
    same(translation_loop(search, model), model, SOURCE, LIMITS, None, numbers)


def test_ensembles(same, tiny_transformer):
    models = [tiny_transformer(scale=1.0, max_length=64, seed=seed) for seed in range(2)]
    ensemble = Ensemble(models)
    same(translation_loop(SEARCHES[0], ensemble), ensemble, SOURCE, LIMITS)


def test_half_precision(same, tiny_transformer):
    model = tiny_transformer(scale=1.0, max_length=64, dtype="bfloat16")
    same(translation_loop(SEARCHES[1], model), model, SOURCE, LIMITS, atol=0.1)


def test_positions_as_distances(same, randomize):
    sizes = dict(d_model=8, d_ff=12, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    model = randomize(T5(T5Config(vocab_size=13, **sizes, dropout=0.0)))
    same(translation_loop(Search(3, 0.6, max_extra_length=EXTRA), model), model, SOURCE, LIMITS)


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("family", ["gpt", "llama", "window", "state"])
def test_generation(family, beam_size, same, randomize):
    sizes = dict(d_model=8, num_layers=2, num_heads=2, max_length=64)
    if family == "gpt":
        model = GPT(GPTConfig(13, **sizes, dropout=0.0))
    else:
        others = {"window": dict(window=6, window_layers=[0]), "state": dict(kernel="elu")}
        model = LLaMA(LLaMAConfig(13, **sizes, num_kv_heads=1, **others.get(family, {})))
    begin = generation_loop(Generation(beam_size=beam_size, max_new_tokens=40), randomize(model))
    same(begin, model, PROMPTS, np.array([41, 20], "int32"), SEGMENTS)


def test_a_shape_is_recorded_once_and_again_when_a_weight_changes(tiny_transformer):
    model, recorder = tiny_transformer(max_length=64), Repeated()
    begin = translation_loop(SEARCHES[0], model)
    with torch.no_grad():
        search = RecordedSearch(begin, lambda: model.variables, recorder)
        search(*tensors(SOURCE, LIMITS))
        first = recorder.records
        assert 1 < first <= 4  # the start, and turns over 16, 32 and 64 positions
        search(*tensors(SOURCE, LIMITS))
        assert recorder.records == first
        search(*tensors(SOURCE[:2], LIMITS[:2]))
        assert recorder.records > first and len(recorder.kept) == 2
        weight = model.weights[0]
        weight.assign(-weight.value)
        ids, scores = search(*tensors(SOURCE, LIMITS))
        assert len(recorder.kept) == 1
        expected_ids, expected_scores = begin(*tensors(SOURCE, LIMITS)).run()
    assert (ids == expected_ids).all()
    torch.testing.assert_close(scores, expected_scores)
    del search
    assert not recorder.kept


def test_a_search_after_the_end_of_another(recorder, tiny_transformer):
    """The memory that graphs share outlives the first of them."""
    model = tiny_transformer(max_length=64)
    begin = translation_loop(SEARCHES[0], model)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (1, 2):
            search = RecordedSearch(begin, lambda: model.variables, recorder)
            search(*tensors(SOURCE[:rows], LIMITS[:rows]))
            del search
            assert not recorder.kept


def test_what_was_used_longest_ago_makes_room(tiny_transformer):
    model, recorder = tiny_transformer(max_length=64), Repeated(most=200_000)
    with torch.no_grad():
        begin = translation_loop(SEARCHES[0], model)
        search = RecordedSearch(begin, lambda: model.variables, recorder)
        for rows in (1, 2, 3):
            search(*tensors(SOURCE[:rows], LIMITS[:rows]))
        sizes = [x.size for x in recorder.kept.values()]
        recorder.most = sum(sizes)
        search(*tensors(SOURCE[:1], LIMITS[:1]))  # now the one used last
        search(*tensors(SOURCE, LIMITS, SOURCE[:, :2]))
        rows = [shapes[2] for _, shapes in recorder.kept]
        assert rows == ["1", "3"] and "None" not in [*recorder.kept][-1][1]
        recorder.most = 1
        with pytest.warns(match=r"its state has [\d,]+ bytes, of at most 1"):
            search(*tensors(SOURCE[:2], LIMITS[:2]))


def test_a_failed_turn_leaves_nothing_behind(recorder, tiny_transformer, monkeypatch):
    """Neither the failed search nor later ones are changed by it."""
    model = tiny_transformer(max_length=64)
    begin = translation_loop(SEARCHES[0], model)
    with torch.no_grad():
        ids, _ = begin(*tensors(SOURCE, LIMITS)).run()
        search = RecordedSearch(begin, lambda: model.variables, recorder)
        step = type(model).step
        with monkeypatch.context() as patch:

            def waiting(*arguments):
                assert torch.zeros(1, device=ids.device).item() == 0  # fails in a record
                raise RuntimeError("it waits")

            patch.setattr(type(model), "step", waiting)
            with pytest.raises(RuntimeError), pytest.warns(match="a search is slower"):
                search(*tensors(SOURCE, LIMITS))
        assert type(model).step is step and not recorder.kept
        for _ in range(2):
            again = RecordedSearch(begin, lambda: model.variables, recorder)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert (again(*tensors(SOURCE, LIMITS))[0][..., : ids.shape[-1]] == ids).all()


@pytest.mark.parametrize("max_length", [9, 10, 11, 12])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_turns_after_the_end_stay_in_the_table_of_positions(
    max_length, positions, same, tiny_transformer
):
    model = tiny_transformer(scale=1.0, max_length=max_length, positions=positions)
    search = Search(2, 0.0, max_extra_length=EXTRA, min_length=max_length)
    limits = np.full(3, max_length - 1, "int32")
    same(translation_loop(search, model), model, SOURCE, limits)


def test_variables_that_are_others_are_noticed(recorder, tiny_transformer):
    model = tiny_transformer(scale=1.0, max_length=64)
    begin = translation_loop(SEARCHES[0], model)
    with torch.no_grad():
        search = RecordedSearch(begin, lambda: model.variables, recorder)
        search(*tensors(SOURCE, LIMITS))
        enable_lora(model, 2)
        for variable in model.trainable_variables:
            variable.assign(variable + 0.5)
        found = search(*tensors(SOURCE, LIMITS))
        expected = begin(*tensors(SOURCE, LIMITS)).run()
    torch.testing.assert_close(found[1], expected[1], atol=1e-4, rtol=1e-4)


def test_what_cannot_be_recorded_is_found_without(tiny_transformer):
    class Broken(Repeated):
        def _record(self, function):
            raise RuntimeError("it waits")

    model, recorder = tiny_transformer(max_length=64), Broken()
    begin = translation_loop(SEARCHES[0], model)
    with torch.no_grad():
        search = RecordedSearch(begin, lambda: model.variables, recorder)
        with pytest.warns(match="a search is slower than others on a GPU: .* it waits"):
            ids, _ = search(*tensors(SOURCE, LIMITS))
        assert (ids == begin(*tensors(SOURCE, LIMITS)).run()[0]).all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            search(*tensors(SOURCE, LIMITS))
    with pytest.raises(NotRecordableError):
        recorder.record(lambda: None)
