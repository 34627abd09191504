"""Foreign trees: brackets of the Penn Treebank, alone and in a zip file."""

import io
import zipfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.data.trees import linearize, read_treebank, read_trees, simplified, spans
from tests.fuzz.mutations import damaged
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("reads text; no tensors")

TREE = "( (S (NP-SBJ-1 (DT The) (NN cat)) (VP (VBZ sleeps) (S (-NONE- *-1))) (. .)) )"
PARTS = ["(", ")", " ", "(NP", "(-NONE- *)", "(TOP", "(", ")", "a", "\n", "((", "))", "(NN b)", "="]
texts = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=14).map("".join),
    damaged(TREE.encode()).map(lambda x: x.decode("latin-1")),
)


def archive(content, name="treebank/combined/wsj_0001.mrg"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, content)
    return file.getvalue()


def taken_apart(text):
    trees = [simplified(tree) for tree in read_trees(text)]
    return [(linearize(tree), spans(tree), str(tree)) for tree in trees if tree is not None]


@fuzz(150, share=2)
@given(texts)
@example("(S " * 20_000 + "(NN a)" + ")" * 20_000)
@example("(" * 20_000)
@example("(NP a b)" + "(NP (X a) b)")
def test_brackets(text):
    outcome("trees", taken_apart, text)


@fuzz(100, share=2)
@given(st.one_of(texts.map(archive), damaged(archive(TREE))))
@example(archive("(S " * 20_000 + "(NN a)" + ")" * 20_000))
def test_zip_files(room, content):
    (path := room / "treebank.zip").write_bytes(content)
    outcome("trees", read_treebank, path)
