"""The process that renders: what a template is given, and what ends it."""

import io
import json

import pytest

from keras_transformer.text import chat_rendering


def text(source, **values):
    return chat_rendering.answer(source, values).get("text")


def error(source, **values):
    return chat_rendering.answer(source, values)["error"]


def test_what_templates_are_given():
    assert text("{{ x | tojson }}", x={"a": "<b> 'ü'"}) == '{"a": "<b> \'ü\'"}'
    assert text("{{ x | tojson(indent=1, sort_keys=true) }}", x={"b": 1, "a": 2}) == (
        '{\n "a": 2,\n "b": 1\n}'
    )
    assert text("{{ x | tojson(ensure_ascii=true, separators=(',', ':')) }}", x=["ü", 1]) == (
        '["\\u00fc",1]'
    )
    assert text("{% for i in x %}{% if i > 1 %}{% break %}{% endif %}{{ i }}{% endfor %}", x=[1, 2])
    assert text("a{% generation %}\n{{ x }}{% endgeneration %}b", x="-") == "a-b"
    assert len(text("{{ strftime_now('%Y') }}")) == 4
    # Blocks take their line with them, as in `transformers`.
    assert text("  {% if true %}\nx\n  {% endif %}\n") == "x\n"


def test_errors():
    assert error("{{ raise_exception('no') }}") == "the chat template rejects the messages: no"
    assert "not valid, line 2: " in error("a\n{% for %}")
    assert "not valid, line 1: " in error("{% generation %}a")
    assert "fails: UndefinedError: 'x' is undefined" in error("{{ x.y }}")
    assert "fails: TypeError" in error("{{ 1 + 'a' }}")
    assert "RecursionError" in error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ().__class__.__base__.__subclasses__() }}",
        "{{ x.append(1) }}",
        "{{ raise_exception.__globals__['os'].system('true') }}",
        "{{ ''['__class__'].mro() }}",
        "{{ 'a'.format.__self__.__class__.__mro__ }}",
        "{{ '{0.__class__.__mro__}'.format(x) }}",
    ],
)
def test_the_sandbox(source):
    assert "reaches outside its sandbox" in error(source, x=[1])


def test_long_texts_are_errors(monkeypatch):
    monkeypatch.setattr(chat_rendering, "CHARACTERS", 10)
    assert "more than 10 characters" in error("{{ 'a' * 11 }}")
    assert text("{{ 'a' * 10 }}") == "a" * 10


def test_requests_are_answered_in_order():
    requests = [dict(source="{{ x }}", values={"x": i}) for i in range(3)]
    lines = b"".join(json.dumps(x).encode() + b"\n" for x in requests)
    found = io.BytesIO()
    chat_rendering.serve(io.BytesIO(lines), found)
    assert [json.loads(x) for x in found.getvalue().splitlines()] == [
        {"text": "0"}, {"text": "1"}, {"text": "2"},
    ]  # fmt: skip
