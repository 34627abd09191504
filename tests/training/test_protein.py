"""Made-up proteins whose structure their residues say, and DNA whose class one place says."""

import random
import zipfile

import keras
import numpy as np
import pytest

from keras_transformer import TextClassifier, TokenTagger, load_pretrained
from keras_transformer.backend import BACKEND
from keras_transformer.data.biology import read_structures
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.hub.hugging_face import write_model
from keras_transformer.models import ESM, ESMConfig
from keras_transformer.saved.folder import load_with_tokenizer
from training import dna, protein

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
    protein.train(structures, tmp_path / "run", tmp_path / "esm", **STEPS, **steps)
    found, tokenizer = load_with_tokenizer(tmp_path / "run", "tagger")
    assert tokenizer.encode_words([["A", "V"]]) == [([0, 5, 7, 2], [1, 2])]
    assert found.config.head == "token_classification" and found.config.max_length >= 16
    kernels = (x.encoder.blocks[0].attention.output_projection.kernel for x in (found, model))
    np.testing.assert_allclose(*map(keras.ops.convert_to_numpy, kernels), atol=1e-5)


def test_dna(tmp_path):
    generator, lines = random.Random(0), []
    for number in range(600):
        bases = generator.choices("ACGT", k=12)
        label = "EI" if bases[6] == "G" else "IE" if bases[6] == "A" else "N"
        lines += [f"{label},   NAME-{number},  {''.join(bases)}"] * (1 + number % 2)
    (tmp_path / "splice.data").write_text("\n".join(lines))
    dna.train(
        tmp_path / "splice.data", tmp_path / "run", **SIZES, bases=2, tokens_per_batch=512,
        epochs=8, warmup_steps=10, peak_learning_rate=1e-2,
    )  # fmt: skip
    found = read_metrics(tmp_path / "run")
    assert found["naive_bayes"]["test_accuracy"] > 0.9 and found["test_accuracy"] > 0.8
    rows = {
        name: (tmp_path / "run" / f"{name}.tsv").read_text().split("\n")[1:]
        for name in ("train", "validation", "test")
    }
    classifier = TextClassifier.load(tmp_path / "run")
    assert classifier.letters_per_word == 2
    words, labels = zip(*(row.split("\t") for row in rows["test"]), strict=True)
    sequences = [x[:2] + "".join(word[-1] for word in x.split()[1:]) for x in words]
    answers = classifier.classify(sequences)
    right = [own[0].label == label for own, label in zip(answers, labels, strict=True)]
    assert np.mean(right) == pytest.approx(found["test_accuracy"], abs=1e-6)
    with pytest.raises(ValueError, match="texts must be strings, not pairs"):
        classifier.classify([("ACGT", "ACGT")])
    assert {name: len(own) for name, own in rows.items()} == dict(
        train=420, validation=60, test=120
    )
    assert len(set().union(*rows.values())) == 600  # none is on two sides


def test_dna_that_is_too_little(tmp_path):
    path = tmp_path / "splice.data"
    path.write_text("EI, a, ACGT\n")
    with pytest.raises(ValueError, match="sequences in .*splice.data must be 10 or more, got 1"):
        dna.train(path, tmp_path / "run")
    rows = (f"EI, {number}, {number:04b}" for number in range(10))
    path.write_text("\n".join(rows).replace("0", "A").replace("1", "C"))
    with pytest.raises(ValueError, match="bases must be at most 4, the length .*, got 5"):
        dna.train(path, tmp_path / "run", bases=5)
