"""Which cases of a test run under which backend."""

import os
from pathlib import Path

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
    "fuzz",
    "serving",
    "system",
    "test_kubernetes.py",
    "test_readme.py",
    "test_sizes.py",
    "text",
    # Other files and programs: tests/hub/families computes under each what is read from files.
    "export/test_gguf.py",
    "hub",
    # These call what tests/running, tests/models and tests/test_losses.py compute under each.
    "language/test_chat.py",
    "language/test_preference_inputs.py",
    "language/test_rewarder.py",
    "language/test_streaming.py",
    "tasks",
    "training",
    "translate",
)
WITH_BACKEND = (
    "analysis/plots/test_history.py",
    "data/test_audio.py",
    "data/test_prefetching.py",
    "docs/test_add_a_family.py",
    "hub/families",
    "hub/marian/test_incoming.py",
    "hub/test_comet.py",
    "serving/test_handlers.py",
    "tasks/test_image_classifier.py",
    "tasks/test_labels.py",
    "tasks/test_mask_filler.py",
    "tasks/test_text_embedder.py",
    "tasks/test_token_tagger.py",
    "text/test_keras_hub_tokenizer.py",
    "training/test_chat_tuning.py",
    "training/test_fine_tuning.py",
    "training/test_language_model.py",
    "training/test_prompted_translation.py",
    "training/test_several_processes.py",
    "translate/engines/test_imports.py",
    "translate/engines/test_litert_engine.py",
    "translate/live",
    "translate/test_language_models.py",
    "translate/test_pipeline.py",
    "translate/test_translator.py",
)


def runs_once(path):
    """Whether PyTorch alone runs a file of tests, by its path in `tests` or a folder's."""
    for name in map(Path.as_posix, (path, *path.parents)):
        if name in (*WITHOUT_BACKEND, *WITH_BACKEND):
            return name in WITHOUT_BACKEND
    return False


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
