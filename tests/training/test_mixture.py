"""Several corpora as one: shares, tags, languages, cleaning, and what is wrong with their files."""

import gzip

import numpy as np
import pytest

from keras_transformer.training import noise
from keras_transformer.training.corpus_options import checked
from keras_transformer.training.mixture import read_corpora, visits_of

DE = dict(source="a.en", target="a.de", validation_source="v.tsv")
FR = dict(source="b.tsv", target_language="fr")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\nthree\nfour\none\n")
    (tmp_path / "a.de").write_text("eins\nzwei\ndrei\nvier\neins\n")
    (tmp_path / "v.tsv").write_text("five\tfünf\n")
    (tmp_path / "b.tsv").write_text("two\tdeux\n")
    with gzip.open(tmp_path / "c.jsonl.gz", "wt") as file:
        file.write('{"en": "six", "de": "sechs"}\n')
    return tmp_path


def read(folder, *tables, temperature=1.0, **options):
    return read_corpora(checked([*tables], temperature, "en", "de"), folder, temperature, **options)


def test_shares_by_temperature():
    # 16 and 81 pairs: shares proportional to 16^(1/2) = 4 and 81^(1/2) = 9.
    small, large = visits_of([16, 81], [1, 1], 2)
    assert large == 1 and 16 * small / (81 * large) == pytest.approx(4 / 9)
    assert visits_of([16, 81], [1, 1], 1) == [1, 1] and visits_of([16, 81], [3, 0.5]) == [3, 0.5]
    small, large = visits_of([16, 81], [1, 1], 1000)
    assert 16 * small == pytest.approx(81 * large, rel=0.01)


def test_one_pair_of_languages_has_no_tags(folder, capsys):
    back = dict(source="c.jsonl.gz", tag="<BT>", weight=2)
    corpus = read(folder, DE, back)
    assert (corpus.source_language, corpus.target_language) == ("en", "de")
    assert corpus.train[0] == ("one", "eins") and corpus.train[-1] == ("<BT> six", "sechs")
    np.testing.assert_array_equal(corpus.visits, [1, 1, 1, 1, 2])
    assert corpus.symbols == ("<BT>",) and corpus.directions == {}
    assert corpus.validation == [("five", "fünf")] == corpus.tests["validation en-de"]
    said = capsys.readouterr().err
    assert "corpus en-de of a.en: kept 4 of 5 pairs" in said and "1 duplicate" in said
    assert "en-de with <BT>: 1 pairs, 2.00 times per epoch, 33.3% of the pairs" in said


def test_prefixes_are_cut_after_noise_and_before_tags(folder, monkeypatch):
    monkeypatch.setattr(noise, "CHANGES", (lambda x, y, *others: (f"{x} {x}", f"{y} {y}"),))
    corpus = read(folder, DE, FR, noise=1.0, prefix_pairs=1.0)
    assert corpus.train[:2] == [(">>de<< one one", "eins eins"), (">>de<< one", "eins")]
    assert len(corpus.train) == 10 and corpus.validation[0] == (">>de<< five", "fünf")


def test_noise_comes_after_cleaning_and_before_tags(folder, monkeypatch):
    monkeypatch.setattr(noise, "CHANGES", (noise._capitals,))
    corpus = read(folder, DE, FR, noise=1.0)
    assert corpus.train[0] == (">>de<< ONE", "EINS") and corpus.train[-1] == (">>fr<< TWO", "DEUX")
    assert corpus.validation[0] == (">>de<< five", "fünf")


def test_several_languages_have_tags(folder):
    corpus = read(folder, DE | {"both_directions": True}, FR, temperature=2)
    assert corpus.source_language is None and corpus.target_language is None
    assert corpus.directions == {
        "validation en-de": ("en", "de"),
        "validation de-en": ("de", "en"),
        "validation en-fr": ("en", "fr"),
    }
    assert corpus.train[0] == (">>de<< one", "eins") and corpus.train[4] == (">>en<< eins", "one")
    assert corpus.train[-1] == (">>fr<< two", "deux")
    assert corpus.validation == [(">>de<< five", "fünf"), (">>en<< fünf", "five")]
    assert corpus.tests["validation de-en"] == [("fünf", "five")]
    np.testing.assert_allclose(corpus.visits, [1] * 8 + [2])  # 4 pairs, and 1: 4^(1/2) = 2
    assert read(folder, DE, FR).source_language == "en"


def test_documents_and_sentences_without_documents(folder):
    files = dict(source="d.en", target="d.de")
    documents = files | {f"validation_{side}": file for side, file in files.items()}
    documents["documents"] = True
    (folder / "d.en").write_text("one\ntwo\n\nthree\n")
    (folder / "d.de").write_text("eins\nzwei\n\ndrei\n")
    corpus = read(folder, DE, documents, context_sentences=1)
    alone = [("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier")]
    assert corpus.train[:4] == alone
    assert corpus.train[4:7] == [alone[0], ("one <sep> two", "eins <sep> zwei"), alone[2]]
    assert corpus.train[7:] == [alone[1]]
    assert corpus.validation == [("five", "fünf"), *corpus.train[4:7]]
    test = [("five", "fünf"), ("", ""), ("", ""), *alone[:2], ("", ""), alone[2], ("", "")]
    assert corpus.tests == {"validation en-de": test}
    both = read(folder, documents | {"both_directions": True}, context_sentences=1)
    assert (">>en<< eins <sep> zwei", "one <sep> two") in both.validation
    with pytest.raises(ValueError, match="context_sentences must be 0 where no corpus has doc"):
        read(folder, DE, context_sentences=1)


def test_options_of_the_run(folder):
    assert len(read(folder, DE, train_size=2).train) == 2
    (folder / "b.tsv").write_text("two two two\tdeux\n")
    with pytest.raises(ValueError, match="b.tsv is empty after cleaning: kept 0 of 1"):
        read(folder, DE, FR, max_length_ratio=2.0)


@pytest.mark.parametrize(
    "tables, error, message",
    [
        ([DE, {"source": "none.tsv"}], FileNotFoundError, "none.tsv"),
        ([DE, {"source": "a.en"}], ValueError, "source must end in one of"),
        ([DE | {"target": "b.tsv"}], ValueError, "b.tsv has both sides of pairs"),
        ([FR], ValueError, r"corpora must be with a validation_source in one of them"),
        ([DE, FR | {"weight": 0.5}], ValueError, "weight must be at least 1 for b.tsv, of 1 pairs"),
    ],
)
def test_wrong_files(folder, tables, error, message):
    with pytest.raises(error, match=message):
        read(folder, *tables)


@pytest.mark.parametrize("text, tag", [("a >>de<< b", ""), ("<BT> a", "<BT>")])
def test_a_tag_is_no_text(folder, text, tag):
    (folder / "b.tsv").write_text(f"two\tdeux\n{text}\tc d\n")
    with pytest.raises(ValueError, match="b.tsv or its validation text contains .* which is a tag"):
        read(folder, DE, FR | {"tag": tag})


def test_a_language_without_text(folder):
    (folder / "b.tsv").write_text("\n")
    with pytest.raises(ValueError, match="empty corpus: no pair with text .* in .*b.tsv"):
        read(folder, DE, FR)
