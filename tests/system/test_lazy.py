"""Names that are imported on first access: of all packages that have some."""

import ast
import importlib
from pathlib import Path

import pytest

from keras_transformer.system.lazy import imported_on_access

pytestmark = pytest.mark.once("names")


def test_a_name_is_imported_when_it_is_asked_for():
    find = imported_on_access("xml", {"XMLParser": "etree.ElementTree"})
    assert find("XMLParser").__name__ == "XMLParser"
    with pytest.raises(AttributeError, match="module 'xml' has no attribute 'Parser'"):
        find("Parser")


@pytest.mark.parametrize("package", ["keras_transformer", "keras_transformer.translate.engines"])
def test_type_checkers_find_every_name(package):
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text())
    (block,) = (
        x for x in tree.body if isinstance(x, ast.If) and "TYPE_CHECKING" in ast.dump(x.test)
    )
    homes = {name.name: x.module for x in block.body for name in x.names}
    assert sorted(homes) == sorted(module.__all__)
    for name, home in homes.items():
        assert getattr(importlib.import_module(home), name) is getattr(module, name)
