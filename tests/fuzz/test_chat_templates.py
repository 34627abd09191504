"""Foreign chat templates: hostile Jinja stays in its sandbox, and broken folders are refused."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.text.chat_template import CHATML, ChatTemplate
from tests.fuzz.mutations import altered, damaged, json_files
from tests.fuzz.outcome import fuzz, outcome

pytestmark = pytest.mark.once("no tensors")

MESSAGES = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada"}]
SECRET = "a line of a file that only the reader may see"
VALUES = ["messages", "''", "()", "{}", "1", "cycler", "joiner", "namespace", "lipsum", "range(3)"]
VALUES += ["self", "loop", "raise_exception", "strftime_now", "bos_token", "true", "[1].append"]
ENDS = ["__class__", "__init__", "__globals__", "__builtins__", "__mro__", "__subclasses__()"]
ENDS += ["__getattribute__", "format", "_TemplateReference__context", "environment", "os", "mro()"]
ENDS += ["popen('touch @marker')", "func_globals", "gi_frame", "update({'a': 1})", "clear()"]
FILTERS = ["attr('__class__')", "map(attribute='__class__')", "list", "tojson", "string", "safe"]
FILTERS += ["format('{0.__class__}')", "upper", "pprint", "xmlattr", "groupby('role')"]
FRAMES = ["{{{{ {} }}}}", "{{% set x = {} %}}{{{{ x }}}}", "{{% if {} %}}a{{% endif %}}",
          "{{% for x in {} %}}{{{{ x }}}}{{% endfor %}}", "{{% include {} %}}",
          "{{% import {} as x %}}", "{{% extends {} %}}", "{{% macro {} %}}"]  # fmt: skip


@st.composite
def expressions(draw):
    text = draw(st.sampled_from([*VALUES, "'@secret'", "'{0.__class__}'.format(messages)"]))
    for end in draw(st.lists(st.sampled_from([*ENDS, *FILTERS]), max_size=4)):
        text += ("|" if end in FILTERS else ".") + end
    return draw(st.sampled_from(FRAMES)).format(text)


templates = st.one_of(
    st.lists(expressions(), min_size=1, max_size=3).map("".join),
    damaged(CHATML.encode()).map(lambda x: x.decode("utf-8", "replace")),
)


@fuzz(100)
@given(templates, st.one_of(st.just(MESSAGES), altered(MESSAGES)))
@example("{{ cycler.__init__.__globals__.os.popen('touch @marker').read() }}", MESSAGES)
@example("{% include '@secret' %}", MESSAGES)
@example("{{ (" * 500 + "1" + ") }}" * 500, MESSAGES)
def test_templates(room, source, messages):
    (secret := room / "secret.txt").write_text(SECRET)
    marker = room / "marker"
    source = source.replace("@secret", str(secret)).replace("@marker", str(marker))
    text = outcome("chat templates", ChatTemplate(source).render, messages)
    assert not marker.exists()
    for shown in (SECRET, "<module", "<frame", "<code"):
        assert shown not in (text or "")


@fuzz(80)
@given(json_files({"chat_template": [{"name": "default", "template": "{{ bos_token }}"}],
                   "bos_token": {"content": "<s>"}}),
       st.one_of(st.none(), st.binary(max_size=20)))  # fmt: skip
def test_folders(room, options, source):
    (room / "tokenizer_config.json").write_bytes(options)
    (room / "special_tokens_map.json").write_text(json.dumps({"eos_token": "</s>"}))
    (room / "chat_template.jinja").unlink(missing_ok=True)
    if source is not None:
        (room / "chat_template.jinja").write_bytes(source)
    outcome("chat templates", ChatTemplate.read, room)
