"""Which cases of a test run under which backend."""

import os

import keras

BACKEND = keras.backend.backend()
# PyTorch starts and compiles soonest, so it runs every case; the others those that differ there.
# The variable KT_EVERY_CASE=1 lets each backend run every case.
EVERY_CASE_ASKED = os.environ.get("KT_EVERY_CASE") == "1"
EVERY_CASE = BACKEND == "torch" or EVERY_CASE_ASKED
# Each writes what the next one reads, so that among them they all read each other's files.
NEXT = {"torch": "jax", "jax": "tensorflow", "tensorflow": "torch"}

# Files and folders of tests of what knows no backend, or runs one of its own. They run once, under
# PyTorch, as do single tests with the mark `once`, which says why no backend can change them.
WITHOUT_BACKEND = (
    "analysis/plots",
    "benchmarks",
    "hub/families/test_errors.py",
    "hub/families/test_fields.py",
    "hub/families/test_gemma_fields.py",
    "hub/families/test_general_fields.py",
    "hub/families/test_rotary_fields.py",
    "hub/families/test_unusual_fields.py",
    "hub/gguf/test_architectures.py",
    "hub/gguf/test_container.py",
    "hub/gguf/test_metadata.py",
    "hub/gguf/test_token_writer.py",
    "hub/gguf/test_tokens.py",
    "weights/test_values.py",
    "cli",
    "corpora",
    "data",
    "demo",
    "distribution/test_launcher.py",
    "distribution/test_places.py",
    "distribution/test_processes.py",
    "docs",
    "evaluation/test_assess.py",
    "evaluation/test_scores.py",
    "export/test_ctranslate2.py",
    "export/test_hugging_face.py",
    "export/test_onnx.py",
    "translate/engines/test_graph_runner.py",
    # These export with TensorFlow under any backend; test_pretrained.py in its own process.
    "export/test_graph.py",
    "export/test_saved_model.py",
    "faults",
    "serving",
    "system",
    "test_kubernetes.py",
    "test_readme.py",
    "test_sizes.py",
    "text",
    # The scripts of tasks call the library; tests/models and tests/test_losses.py train their
    # models under each.
    "training/test_dna.py",
    "training/test_image_classification.py",
    "training/test_many_languages.py",
    "training/test_masked_language_model.py",
    "training/test_parsing.py",
    "training/test_preparation.py",
    "training/test_preference_tuning.py",
    "training/test_protein.py",
    "training/test_question_answering.py",
    "training/test_recipe.py",
    "training/test_recipes.py",
    "training/test_runs.py",
    "training/test_span_corruption.py",
    "training/test_speech_recognition.py",
    "training/test_speech_synthesis.py",
    "training/test_text_classification.py",
    "training/test_token_classification.py",
)
WITH_BACKEND = (
    "analysis/plots/test_history.py",
    "data/test_audio.py",
    "data/test_prefetching.py",
    "docs/test_add_a_family.py",
    "serving/test_handlers.py",
    "text/test_keras_hub_tokenizer.py",
)


def sample(every, *few):
    """All of these cases with KT_EVERY_CASE=1, else those that are named, under any backend."""
    every = list(every)
    assert all(case in every for case in few), few
    return every if EVERY_CASE_ASKED else list(few)


def cases(every, *elsewhere):
    """All of these cases if `EVERY_CASE`, else those that are named."""
    every = list(every)
    assert all(case in every for case in elsewhere), elsewhere
    return every if EVERY_CASE else list(elsewhere)
