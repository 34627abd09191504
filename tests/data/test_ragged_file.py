"""Sequences on disk are those that were written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.ragged_file import RaggedFile

SEQUENCES = st.lists(st.lists(st.integers(0, 255), max_size=5), max_size=8)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
@given(SEQUENCES)
def test_written_and_read(tmp_path_factory, dtype, sequences):
    path = tmp_path_factory.mktemp("ids") / "ids.bin"
    with RaggedFile(path, dtype) as file:
        for sequence in sequences:
            file.append(sequence[:2])
            file.extend(np.array(sequence[2:], dtype))
    found = file.read()
    assert len(file) == len(found) == len(sequences)
    assert [x.tolist() for x in found] == sequences
    assert found.values.dtype == dtype
    assert isinstance(found.values, np.memmap) or not sum(map(len, sequences))
