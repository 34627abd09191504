"""The look of the page: on a phone, and the contrast of its colours."""

import re
from importlib import resources

import pytest
from playwright.sync_api import expect

from tests.serving.page.browsing import fits, looks, translation, write

pytestmark = pytest.mark.once("the page: what it shows comes from any backend")

PAGE = resources.files("keras_transformer.serving") / "page"


def test_a_phone(visit):
    page = visit.page(viewport=dict(width=360, height=640), has_touch=True)
    page.get_by_label("Translate from").select_option("en")
    write(page, "one two three four five six seven eight nine ten " * 3 + "x" * 90)
    expect(translation(page)).not_to_be_empty()
    assert fits(page)
    write(page, "one two three four five six seven eight. one two three four five.")
    view = looks(page)
    box = view.bounding_box()
    assert view.evaluate("(x) => x.scrollWidth <= x.clientWidth")
    assert fits(page) and box["x"] >= 0 and box["width"] <= 360
    view.get_by_role("grid").locator("td").nth(3).tap()
    expect(view.locator("#readout")).to_contain_text("To write ")
    view.get_by_text("Lines", exact=True).click()
    assert fits(page)
    assert view.evaluate("(x) => x.scrollWidth <= x.clientWidth")
    assert view.locator("#picture").evaluate("(x) => x.scrollWidth <= x.clientWidth")


def test_colours_have_enough_contrast():
    found = re.findall(r"--([\w-]+): #(\w{6});", (PAGE / "page.css").read_text())
    for start in (0, len(found) // 2):  # light, dark
        colours = {}
        for name, code in found[start : start + len(found) // 2]:
            parts = [int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)]
            linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
            colours[name] = sum(
                x * y for x, y in zip(linear, (0.2126, 0.7152, 0.0722), strict=True)
            )

        def contrast(one, other, colours=colours):
            dark, light = sorted((colours[one], colours[other]))
            return (light + 0.05) / (dark + 0.05)

        for name in ("ink", "soft", "accent", "error"):
            for ground in ("surface", "ground", "tint"):
                assert contrast(name, ground) >= 4.5, (name, ground)
        for head in range(8):
            assert contrast(f"head-{head}", "surface") >= 4.5
        assert contrast("edge", "surface") >= 3
