"""The chat of the page in a browser."""

import pytest
from playwright.sync_api import expect

from keras_transformer.language.chat import Chat
from keras_transformer.serving import Catalogue, Settings, create_app


@pytest.fixture(scope="module")
def talks(served, folders, writer_folder):
    """The address of a server of a translator and a language model."""
    catalogue = Catalogue.load([folders[0], writer_folder])
    with served(create_app(lambda: catalogue, Settings(most_characters=500))) as address:
        yield address


@pytest.fixture
def page(visit, talks):
    page = visit.page(talks)
    page.get_by_role("tab", name="Chat").click()
    return page


def messages(page):
    return page.get_by_role("log").locator("li .text")


def send(page, text):
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def fixed(page, fields):
    """Lets the page's requests have these fields, so that replies are known."""
    page.add_init_script(f"""
        const plain = window.fetch;
        window.asked = [];
        window.fetch = (path, request) => {{
          if (request?.body && path.startsWith("v1/")) {{
            const body = {{ ...JSON.parse(request.body), ...{fields} }};
            window.asked.push(body);
            request = {{ ...request, body: JSON.stringify(body) }};
          }}
          return plain(path, request);
        }};""")
    page.reload()
    page.get_by_role("tab", name="Chat").click()


def test_a_chat_goes_on(page, writer):
    fixed(page, "{ seed: 1, max_tokens: 20 }")
    options = dict(seed=1, max_new_tokens=20, temperature=1.0)
    chat = [{"role": "user", "content": "one two"}]
    send(page, "one two")
    first = Chat(writer).reply(chat, **options)
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()
    assert messages(page).nth(1).text_content() == first
    chat += [{"role": "assistant", "content": first}, {"role": "user", "content": "<b>six</b>"}]
    send(page, "<b>six</b>")
    expect(page.get_by_role("button", name="Copy", exact=True)).to_have_count(2)
    assert page.evaluate("window.asked[1].messages") == chat
    assert messages(page).nth(2).text_content() == "<b>six</b>"
    assert messages(page).nth(3).text_content() == Chat(writer).reply(chat, **options)
    page.get_by_role("button", name="New chat").click()
    expect(messages(page)).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_a_reply_is_stopped(page, visit):
    fixed(page, "{ temperature: 2, seed: 3 }")
    page.route("**/v1/chat/completions", lambda route: None)  # it never answers
    send(page, "one")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("There was no reply.")).to_be_visible()
    expect(messages(page)).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_have_value("one")  # to send it again
    page.unroute("**/v1/chat/completions")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()


def test_keys(page):
    box = page.get_by_label("Message", exact=True)
    box.fill("one")
    box.press("Shift+Enter")
    box.press_sequentially("two")
    expect(box).to_have_value("one\ntwo")
    expect(messages(page)).to_have_count(0)
    box.press("Enter")
    expect(messages(page).first).to_have_text("one\ntwo", use_inner_text=True)
    tab = page.get_by_role("tab", name="Chat")
    tab.press("ArrowLeft")
    expect(page.get_by_label("Text to translate")).to_be_visible()
    expect(box).to_be_hidden()


def test_what_the_server_refuses_is_said(page, visit):
    visit.expected.append("413")
    send(page, "x" * 600)
    expect(page.get_by_text("at most 500 characters")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("x" * 600)


def test_a_phone(visit, talks):
    page = visit.page(talks, viewport=dict(width=360, height=640), has_touch=True)
    page.get_by_role("tab", name="Chat").tap()
    page.get_by_label("Message", exact=True).fill("y" * 90)
    page.get_by_role("button", name="Send").tap()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    box = page.get_by_label("Message", exact=True).bounding_box()
    assert box["y"] + box["height"] <= 640


def test_a_server_without_translators(visit, served, chats):
    with served(create_app(lambda: chats)) as address:
        page = visit.page(address)
        expect(page.get_by_label("Message", exact=True)).to_be_visible()
        expect(page.get_by_role("tablist")).to_be_hidden()
        expect(page.get_by_label("Text to translate")).to_be_hidden()
        assert page.title() == "Chat · keras_transformer"
