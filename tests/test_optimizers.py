"""The warmup schedule against equation 3, through saving; the paper's Adam."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import optimizers
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.optimizers import Adam, WarmupSchedule, adam
from keras_transformer.training import recipe


def equation_3(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def test_equation_3():
    schedule = WarmupSchedule.paper(512, 4000)
    for step in (1, 2, 10, 399, 3999, 4000, 4001, 12_345, 100_000, 300_000):
        rate = float(schedule(step - 1))  # Keras counts the updates done, the paper this one
        assert rate == pytest.approx(equation_3(step, 512, 4000), rel=1e-5)


def test_the_peak_is_at_the_end_of_warmup():
    schedule = WarmupSchedule(0.005, warmup_steps=20)
    rates = [float(schedule(step)) for step in range(60)]
    assert int(np.argmax(rates)) == 19 and rates[19] == pytest.approx(0.005)
    assert (np.diff(rates[:20]) > 0).all() and (np.diff(rates[19:]) < 0).all()
    assert rates[0] == pytest.approx(0.005 / 20)
    assert float(schedule(79)) == pytest.approx(0.005 / 2)


def test_a_linear_decay_to_zero():
    schedule = WarmupSchedule(0.005, warmup_steps=20, total_steps=100)
    rates = [float(schedule(step)) for step in range(110)]
    updates = np.arange(1, 111)
    expected = 0.005 * np.interp(updates, [0, 20, 100], [0, 1, 0])
    np.testing.assert_allclose(rates, expected, atol=1e-8)


@pytest.mark.parametrize("decay", optimizers.DECAYS)
def test_decays_to_zero_by_hand(decay):
    schedule = WarmupSchedule(0.005, warmup_steps=20, total_steps=100, decay=decay)
    updates = np.arange(1, 111)
    expected = {
        "linear": np.interp(updates, [0, 20, 100], [0, 1, 0]),
        "cosine": np.where(
            updates < 20,
            updates / 20,
            (1 + np.cos(np.pi * np.clip((updates - 20) / 80, 0, 1))) / 2,
        ),
        "cooldown": np.minimum(updates / 20, (20 / updates) ** 0.5)
        * np.clip((100 - updates) / 20, 0, 1),
    }[decay]
    rates = [float(schedule(step)) for step in range(110)]
    np.testing.assert_allclose(rates, 0.005 * expected, atol=1e-8)
    assert max(rates) == pytest.approx(0.005) and rates[99:] == pytest.approx([0.0] * 11, abs=1e-9)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert again.decay == decay
    assert decay in recipe.DECAYS
    with pytest.raises(ValueError, match="decay must be one of .*, got 'steps'"):
        WarmupSchedule(0.005, 20, 100, decay="steps")


def test_weight_decay_spares_biases_and_norms(tiny_transformer):
    model = tiny_transformer(num_encoder_layers=1, num_decoder_layers=1)
    # A rate of 1 and no gradient: Adam itself changes nothing.
    optimizer = adam(1.0, weight_decay=0.25)
    optimizer.build(model.trainable_variables)
    before = [ops.convert_to_numpy(x) for x in model.trainable_variables]
    optimizer.apply([ops.convert_to_tensor(np.zeros_like(x)) for x in before])
    decayed = 0
    for variable, value in zip(model.trainable_variables, before, strict=True):
        spared = variable.path.rpartition("/")[2] in ("bias", "gamma", "beta")
        assert spared == (value.ndim == 1)
        factor = 1.0 if spared else 0.75
        np.testing.assert_allclose(ops.convert_to_numpy(variable), factor * value, atol=1e-6)
        decayed += not spared
    assert decayed > 5


def test_takes_an_integer_tensor():
    schedule = WarmupSchedule(0.005, warmup_steps=20)
    step = ops.convert_to_tensor(7, dtype="int64" if keras.backend.backend() != "jax" else "int32")
    assert float(schedule(step)) == pytest.approx(float(schedule(7)))


def test_serialization():
    schedule = WarmupSchedule(0.005, 20, 90, name="mine")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert isinstance(again, WarmupSchedule) and again.get_config() == schedule.get_config()
    assert (again.peak, again.warmup_steps, again.total_steps) == (0.005, 20, 90)
    assert again.name == "mine"


def test_a_saved_model_goes_on_at_its_step(rng, saved_and_loaded):
    x, y = rng.standard_normal((4, 3)).astype("float32"), np.ones((4, 2), "float32")
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.compile(adam(WarmupSchedule(0.1, warmup_steps=5)), "mse")
    for _ in range(8):
        model.train_on_batch(x, y)
    loaded = saved_and_loaded(model)
    assert isinstance(loaded.optimizer._learning_rate, WarmupSchedule)
    assert int(loaded.optimizer.iterations) == 8
    # The next update is the ninth, past the peak at the fifth.
    assert float(loaded.optimizer.learning_rate) == pytest.approx(0.1 * (5 / 9) ** 0.5, rel=1e-5)
    for each in (model, loaded):
        each.train_on_batch(x, y)
    for one, other in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_allclose(*map(ops.convert_to_numpy, (one, other)), rtol=1e-6)


def test_adam_of_the_paper():
    optimizer = adam(0.5)
    assert isinstance(optimizer, keras.optimizers.Adam)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert float(optimizer.learning_rate) == pytest.approx(0.5)
    changed = adam(0.5, beta_2=0.997, gradient_accumulation_steps=2, global_clipnorm=1.0)
    assert (changed.beta_1, changed.beta_2) == (0.9, 0.997)
    assert (changed.gradient_accumulation_steps, changed.global_clipnorm) == (2, 1.0)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_updates_as_that_of_keras(rng, amsgrad):
    weights, *gradients = rng.normal(size=(5, 4, 3)).astype("float32")
    found = []
    for kind in (Adam, keras.optimizers.Adam):
        variables = [keras.Variable(weights), keras.Variable(2 * weights[0])]
        optimizer = kind(0.1, beta_2=0.98, epsilon=1e-9, amsgrad=amsgrad, global_clipnorm=2.0)
        optimizer.build(variables)
        for gradient in gradients:
            both = [ops.convert_to_tensor(x) for x in (gradient, gradient[1])]
            optimizer.apply(both, variables)
        found.append([ops.convert_to_numpy(x) for x in variables])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert np.abs(found[0][0] - weights).max() > 0.1


@pytest.mark.parametrize("peak,warmup_steps", [(0, 10), (-0.1, 10), (0.1, 0), (0.1, -3)])
def test_arguments_must_be_positive(peak, warmup_steps):
    name, value = ("peak", peak) if peak <= 0 else ("warmup_steps", warmup_steps)
    with pytest.raises(ValueError, match=f"{name} must be positive, got {value}"):
        WarmupSchedule(peak, warmup_steps)


@pytest.mark.parametrize("total_steps", [0, 10])
def test_the_decay_must_end_after_the_warmup(total_steps):
    message = f"total_steps must be more than warmup_steps=10, got {total_steps}"
    with pytest.raises(ValueError, match=message):
        WarmupSchedule(0.1, 10, total_steps)


def test_accumulated_gradients_of_two_halves_are_those_of_the_whole(tiny_transformer):
    """Halves with as many tokens, so that the mean of the means is the mean."""
    ids = np.random.default_rng(0).integers(4, 9, (4, 5)).astype("int32")
    inputs = {"source_ids": ids, "target_ids": np.roll(ids, 1, axis=1)}
    sizes = dict(dropout=0.0, num_decoder_layers=1)
    before = ops.convert_to_numpy(tiny_transformer(**sizes)(inputs))
    logits = []
    for batch_size, steps in ((4, None), (2, 2)):
        model = tiny_transformer(**sizes)
        optimizer = adam(1e-3, gradient_accumulation_steps=steps)
        model.compile(optimizer, LabelSmoothedCrossentropy())
        model.fit(inputs, ids, batch_size=batch_size, epochs=3, shuffle=False, verbose=0)
        logits.append(ops.convert_to_numpy(model(inputs)))
    assert np.abs(logits[0] - before).max() > 1e-2
    np.testing.assert_allclose(logits[1], logits[0], atol=1e-3)


@pytest.mark.parametrize("beta_2", [0.98, 0.999])
def test_moments_in_bfloat16_follow_those_in_float32(rng, beta_2):
    """Rounded to the nearest, a velocity would not move: its steps are smaller than a unit."""
    weights = rng.normal(size=(7, 5)).astype("float32")
    gradients = rng.normal(size=(200, 7, 5)).astype("float32") + 0.5
    ends, moments = [], []
    for state_dtype in (None, "bfloat16"):
        variable = keras.Variable(weights)
        optimizer = adam(0.01, beta_2=beta_2, state_dtype=state_dtype)
        optimizer.build([variable])
        for gradient in gradients:
            optimizer.apply([ops.convert_to_tensor(gradient)], [variable])
        ends.append(ops.convert_to_numpy(variable))
        (velocity,) = optimizer._velocities
        assert velocity.dtype == (state_dtype or "float32")
        moments.append(ops.convert_to_numpy(ops.cast(velocity, "float32")))
    np.testing.assert_allclose(moments[1], moments[0], rtol=0.05)
    np.testing.assert_allclose(ends[1], ends[0], atol=0.01 * np.abs(ends[0] - weights).max())


def test_small_moments_are_saved_and_go_on(rng, saved_and_loaded):
    x, y = rng.standard_normal((4, 3)).astype("float32"), np.ones((4, 2), "float32")
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.compile(adam(0.1, state_dtype="bfloat16"), "mse")
    for _ in range(3):
        model.train_on_batch(x, y)
    loaded = saved_and_loaded(model)
    assert loaded.optimizer.state_dtype == "bfloat16"
    for each in (model, loaded):
        each.train_on_batch(x, y)
    for one, other in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_allclose(*map(ops.convert_to_numpy, (one, other)), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "amsgrad"), [("int8", False), ("bfloat16", True)])
def test_dtypes_of_moments_that_there_are_not(dtype, amsgrad):
    with pytest.raises(ValueError, match=f"state_dtype must be None or .*, got '{dtype}'"):
        adam(0.1, state_dtype=dtype, amsgrad=amsgrad)
