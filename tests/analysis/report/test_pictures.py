"""Pictures of a report: sizes by hand, and names that are escaped."""

import re
from xml.etree import ElementTree

import pytest

from keras_transformer.analysis.report.pictures import HEIGHT, bar, heat_map, histogram

pytestmark = pytest.mark.once("texts: no tensor is read")


def test_a_histogram_by_hand():
    picture = histogram([0, 1, 1, 9, 99, -1, float("nan")], "<b>", [0, 5, 10])
    found = ElementTree.fromstring(picture)
    heights = [float(x.attrib["height"]) for x in found.iter("rect")]
    assert heights == [HEIGHT, HEIGHT / 2]
    assert [x.text for x in found.iter("title")] == ["0 to 5: 4", "5 to 10: 2"]
    assert [x.text for x in found.iter("text")] == ["4", "0", "5", "10", "<b>"]
    nothing = ElementTree.fromstring(histogram([float("nan")], "x", [0, 1]))
    assert [float(x.attrib["height"]) for x in nothing.iter("rect")] == [0]


def test_bars_and_heat():
    assert "width:50.0%" in bar(5, 10) and ">5.0<" in bar(5, 10)
    found = heat_map(["<i>", "b"], ["c", "d"], [[1, 0], [0.25, 0.001]])
    assert re.findall("--w:([0-9.]+)", found) == ["1.00", ".25"]
    assert "<i>" not in found and "&lt;i&gt;" in found
    rows = ElementTree.fromstring(found).findall("tbody/tr")
    assert [len(row) for row in rows] == [3, 3]
