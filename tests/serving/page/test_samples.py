"""The page about the API: its samples run, and it obeys the policy."""

import json
import shutil
import subprocess
import sys

import httpx
import pytest
from playwright.sync_api import expect

from keras_transformer.serving import Catalogue, Settings, create_app
from tests.serving.page.browsing import fits

pytestmark = pytest.mark.once("the page: what it shows comes from any backend")

RUN = """async (code) => {
  const said = [];
  const console = { log: (x) => said.push(x) };
  await eval(`(async () => {${code}})()`);
  return said[0];
}"""


def sample(page, name):
    return page.get_by_label(name, exact=True).and_(page.locator("pre")).text_content()


def test_the_samples_run(visit, url, translators):
    page = visit.page(f"{url}/?source=de&target=en", bypass_csp=True)  # for eval
    page.get_by_role("link", name="API").click()
    expect(page.get_by_label("Translate from")).to_have_value("de")
    expect(page.get_by_label("Translate into")).to_have_value("en")
    (expected,) = translators[1].translate(["Guten Morgen!"])

    def run(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert run(sys.executable, "-c", sample(page, "Python")) == expected
    assert page.evaluate(RUN, sample(page, "JavaScript")) == expected
    if shutil.which("curl") and shutil.which("bash"):
        answer = json.loads(run("bash", "-c", sample(page, "curl")))
        assert answer["translatedText"] == expected
    page.get_by_role("button", name="Send the request").click()
    expect(page.locator("#answer")).to_contain_text(json.dumps(expected, ensure_ascii=False))
    page.get_by_label("Translate from").select_option("en")
    assert '"source": "en"' in sample(page, "Python")
    expect(page.locator("#answer")).to_be_hidden()
    page.get_by_role("link", name="Back to the page").click()
    expect(page.get_by_label("Text to translate")).to_be_visible()
    assert page.url.endswith("/?source=en&target=de")


def test_a_sample_is_copied(visit, url):
    page = visit.page(f"{url}/api.html", permissions=["clipboard-read", "clipboard-write"])
    expect(page.get_by_label("Translate into")).not_to_have_value("")
    page.get_by_role("button", name="Copy").nth(1).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == sample(page, "Python")


def test_a_key_and_a_language_model(visit, served, folders, writer_folder):
    catalogue = Catalogue.load([folders[0], writer_folder])
    visit.expected += ["401"]
    with served(create_app(lambda: catalogue, Settings(api_key="secret"))) as address:
        page = visit.page(f"{address}/api.html")
        expect(page.get_by_text("This server needs an API key")).to_be_visible()
        page.get_by_label("Task").select_option("poet")
        expect(page.get_by_label("Translate from")).to_be_hidden()
        code = sample(page, "Python")
        assert f'"{address}/v1/chat/completions"' in code
        assert '"Authorization": "Bearer YOUR_KEY"' in code
        page.get_by_role("button", name="Send the request").click()
        expect(page.get_by_text("The server refused the request: ")).to_be_visible()
        page.evaluate("() => sessionStorage.setItem('api_key', 'secret')")
        assert "secret" not in sample(page, "curl")
        page.close()


@pytest.mark.parametrize("viewport", [(1280, 720), (390, 844)])
def test_it_fits(visit, url, viewport):
    width, height = viewport
    page = visit.page(f"{url}/api.html", viewport=dict(width=width, height=height))
    expect(page.locator("#python")).not_to_be_empty()
    assert fits(page)


def test_the_policy_and_the_documentation(visit, url):
    for path in ("", "api.html"):
        headers = httpx.get(f"{url}/{path}").headers
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"] == "no-cache"
    page = visit.page()
    page.get_by_role("link", name="API").click()
    page.get_by_role("link", name="All routes").click()
    expect(page.locator("#operations-translate-translate_translate_post")).to_be_visible()
