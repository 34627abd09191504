"""Times of processes: processor and wall seconds, the least of those after the first."""

import sys

import pytest

from benchmarks.start import Row


def test_a_row_has_the_first_and_the_least_times(tmp_path):
    program = "import os; print(os.environ['XDG_CACHE_HOME'], os.environ['NAME'])"
    row = Row("name", (sys.executable, "-c", program), {"NAME": "b"})
    assert row.run(str(tmp_path)) == f"{tmp_path} b\n"
    (processor, wall), *_ = row.times
    assert 0 < processor < 5 and wall > 0
    base = Row("import", (), {}, times=[(9.0, 9.0), (2.0, 5.0), (1.0, 6.0)])
    row = Row("translate", (), {}, base, [(4.0, 8.0), (3.0, 2.5), (3.0, 1.0)])
    assert base.cells() == ["import", "9.00", "9.00", "1.00", "5.00", ""]
    assert row.cells() == ["translate", "4.00", "8.00", "3.00", "1.00", "3.00"]


def test_a_process_that_fails():
    with pytest.raises(RuntimeError, match="name failed:(.|\n)*ZeroDivisionError"):
        Row("name", (sys.executable, "-c", "1 / 0"), {}).run("")
