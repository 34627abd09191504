"""The view of attention in a browser: heat map, lines, keyboard."""

from playwright.sync_api import expect

from tests.serving.page.browsing import attention, looks, mean, percent, write


def test_the_heat_map_says_a_rows_weights(page, url):
    write(page, "one two three")
    view = looks(page)
    found = attention(url, "one two three")
    weights = mean(found["cross"][-1])
    grid = view.get_by_role("grid")
    headings = [*found["source_tokens"], *found["target_tokens"]]
    assert grid.locator("th").all_text_contents() == headings
    grid.locator("tbody tr").nth(1).get_by_role("rowheader").hover()
    readout = view.locator("#readout")
    best = max(range(len(weights[1])), key=weights[1].__getitem__)
    words = f"To write {found['target_tokens'][1]}, the model looks at "
    expect(readout).to_contain_text(f"{words}{found['source_tokens'][best]} ")
    expect(readout).to_contain_text(percent(weights[1][best]))
    expect(grid.locator("tr.on th")).to_have_text(found["target_tokens"][1])
    grid.locator("tbody tr").nth(2).locator("td").nth(0).hover()
    here = f"Here: {found['source_tokens'][0]} {percent(weights[2][0])}."
    expect(readout).to_contain_text(here)
    view.locator("h2").hover()
    expect(grid.locator("tr.on")).to_have_count(0)


def test_parts_layers_and_heads(page, url):
    write(page, "one two three")
    view = looks(page)
    found = attention(url, "one two three")
    for part, rows, columns in [
        ("Encoder", "source_tokens", "source_tokens"),
        ("Decoder", "target_tokens", "input_tokens"),
        ("Cross", "target_tokens", "source_tokens"),
    ]:
        view.get_by_text(part, exact=True).click()
        layers = found[part.lower()]
        assert view.get_by_label("Layer").locator("option:enabled").count() == len(layers)
        view.get_by_label("Layer").select_option("1")
        view.locator("#one-head").get_by_text("2", exact=True).click()
        assert view.locator("thead th").all_text_contents() == found[columns]
        assert view.locator("tbody th").all_text_contents() == found[rows]
        cells = view.locator("tbody td").evaluate_all("cells => cells.map((x) => x.ariaLabel)")
        assert cells == [
            f"{row}, {column}: {percent(weight)}"
            for row, weights in zip(found[rows], layers[0][1], strict=True)
            for column, weight in zip(found[columns], weights, strict=True)
        ]


def test_lines_between_words(page, url):
    write(page, "one two three")
    view = looks(page)
    view.get_by_text("Lines", exact=True).click()
    heads = attention(url, "one two three")["cross"][-1]
    drawn = view.locator(".lines line")
    expect(drawn).to_have_count(sum(x >= 0.02 for head in heads for row in head for x in row))
    view.get_by_role("toolbar", name="Translation").get_by_role("button").nth(1).hover()
    own = view.locator(".lines line.on")
    expect(own).to_have_count(sum(x >= 0.02 for head in heads for x in head[1]))
    expect(view.locator("#readout")).to_contain_text("To write ")
    expect(view.locator(".lines line:not(.on)").first).to_have_css("opacity", "0")
    view.get_by_role("toolbar", name="Text").get_by_role("button").first.focus()
    expect(own).to_have_count(sum(row[0] >= 0.02 for head in heads for row in head))
    expect(view.locator("#readout")).to_contain_text(" is looked at to write ")
    view.locator("#some-heads").get_by_text("1", exact=True).click()
    expect(drawn).to_have_count(sum(x >= 0.02 for row in heads[1] for x in row))
    view.locator("#some-heads").get_by_text("2", exact=True).click()
    expect(drawn).to_have_count(0)


def test_the_sentence_at_the_cursor_is_looked_at(page, translators):
    one, six = translators[0].translate(["one two.", "six nine!"])
    write(page, "one two. six nine!")
    view = looks(page)
    expect(view.get_by_label("Sentence")).to_have_value("six nine!")
    expect(view.locator("#pair-target")).to_have_text(six)
    view.get_by_label("Sentence").select_option("one two.")
    expect(view.locator("#pair-target")).to_have_text(one)


def test_by_keyboard_alone(page, translators):
    press = page.keyboard.press
    page.get_by_label("Text to translate").focus()
    page.keyboard.type("one two")
    expect(page.get_by_role("button", name="Attention")).to_be_enabled()
    for _ in range(20):
        press("Tab")
        if page.evaluate("() => document.activeElement.id") == "look":
            break
    press("Enter")
    view = page.get_by_role("dialog")
    expect(view.get_by_role("grid")).to_be_visible()
    for name in ("Close", "Map", "Layer", "Cross", "Mean"):
        focused = view.locator(":focus")
        assert name in (focused.get_attribute("aria-label") or focused.evaluate(LABEL))
        press("Tab")
    grid = view.get_by_role("grid")
    expect(grid.locator("tr").nth(1).locator("td").first).to_be_focused()
    press("ArrowDown")
    press("ArrowRight")
    press("End")
    press("ArrowLeft")
    columns = grid.locator("thead th").count()
    expect(grid.locator("tr").nth(2).locator("td").nth(columns - 2)).to_be_focused()
    row = grid.locator("tbody th").nth(1).text_content()
    expect(view.locator("#readout")).to_contain_text(f"To write {row}, the model looks at ")
    press("Escape")
    expect(view).to_be_hidden()
    expect(page.get_by_role("button", name="Attention")).to_be_focused()
    page.get_by_label("Text to translate").focus()
    press("Control+Enter")
    expect(view.get_by_role("grid")).to_be_visible()


LABEL = "(element) => element.closest('label').textContent"
