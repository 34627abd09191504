"""Made-up proteins whose structure their residues say."""

import random
import zipfile

import keras
import numpy as np
import pytest

from keras_transformer import TokenTagger, load_pretrained
from keras_transformer.backend import BACKEND
from keras_transformer.data.biology import read_structures
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.hub.hugging_face_checkpoint import write_model
from keras_transformer.models import ESM, ESMConfig
from keras_transformer.saved.folder import load_with_tokenizer
from keras_transformer.training import protein

SIZES = dict(d_model=16, num_layers=1, num_heads=2, dropout=0.0)


STRUCTURE_OF = dict(A="H", L="H", V="E", I="E", G="C", P="C")
STEPS = dict(tokens_per_batch=256, warmup_steps=10, max_length=16, window=3)


@pytest.fixture(scope="module")
def structures(tmp_path_factory):
    """FLIP's archive, in small."""
    generator, files = random.Random(0), dict(sequences="", mask="", sampled="")
    for number in range(288):  # of one length, which makes whole batches of one shape
        letters = generator.choices("ALVIGP", k=14)
        part = "SET=train" if number < 272 else "SET=test"
        validation = 256 <= number < 272
        files["sequences"] += f">{number}\n{''.join(letters)}\n"
        files["mask"] += f">{number}\n0{'1' * (len(letters) - 1)}\n"
        structure = "".join(STRUCTURE_OF[x] for x in letters)
        files["sampled"] += f">{number} {part} VALIDATION={validation}\n{structure}\n"
    path = tmp_path_factory.mktemp("flip") / "splits.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"splits/{name}.fasta", text)
    return path


def test_proteins(structures, tmp_path):
    steps = dict(epochs=6, peak_learning_rate=1e-2, pretraining_epochs=1)
    protein.train(structures, tmp_path / "run", **SIZES, **STEPS, **steps)
    found = read_metrics(tmp_path / "run")["test"]
    assert found["test_accuracy"] > 0.9 and found["baseline_accuracy"] > 0.9
    tagger = TokenTagger.load(tmp_path / "run")
    assert tagger.model.config.labels == ("C", "E", "H")
    ((ids, starts),) = tagger.tokenizer.encode_words([["A", "V", "G"]])
    assert len(ids) == 5 and starts == [1, 2, 3]
    # The known answers: each residue says its structure.
    proteins = [row[0] for row in read_structures(structures)["test"]]
    found_tags = tagger.tag_words([list(protein) for protein in proteins])
    right = [
        x.label == STRUCTURE_OF[residue]
        for protein, tags in zip(proteins, found_tags, strict=True)
        for residue, x in zip(protein[1:], tags[1:], strict=True)  # the first is not resolved
    ]
    assert np.mean(right) == pytest.approx(found["test_accuracy"], abs=1e-6)
    (runs,) = tagger.tag(proteins[:1])
    assert [x.text for x in runs] == [proteins[0][x.start : x.end] for x in runs]
    assert runs[0].start == 0 and runs[-1].end == len(proteins[0])


@pytest.mark.skipif(BACKEND != "torch", reason="elsewhere it is a compilation of the same layers")
def test_proteins_from_an_imported_esm(structures, tmp_path):
    """Its vocabulary has other special tokens at other places; its weights are where it begins."""
    pieces = "<cls> <pad> <eos> <unk> L A G V I P X <mask>".split()
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    sizes = dict(d_model=16, d_ff=8, num_layers=1, num_heads=2, max_length=30)
    model = ESM(ESMConfig(len(pieces), mask_id=11, **sizes))
    write_model(tmp_path, model)
    load_pretrained(tmp_path).save(tmp_path / "esm")
    steps = dict(epochs=2, peak_learning_rate=1e-9, pretraining_epochs=1, dropout=0.0)
    protein.train(structures, tmp_path / "run", start_from=tmp_path / "esm", **STEPS, **steps)
    found, tokenizer = load_with_tokenizer(tmp_path / "run", "tagger")
    assert tokenizer.encode_words([["A", "V"]]) == [([0, 5, 7, 2], [1, 2])]
    assert found.config.head == "token_classification" and found.config.max_length >= 16
    kernels = (x.encoder.blocks[0].attention.output_projection.kernel for x in (found, model))
    np.testing.assert_allclose(*map(keras.ops.convert_to_numpy, kernels), atol=1e-5)
