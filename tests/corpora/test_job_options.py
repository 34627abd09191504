"""Bad options of a job are named."""

import re

import pytest

from keras_transformer.corpora.job_options import JobOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(executor="spark"), "executor must be one of ('local', 'ray'), got 'spark'"),
        (dict(processes=0), "processes must be a whole number of at least 1, got 0"),
        (dict(shard="8/8"), "shard must be part and number of parts"),
        (dict(shard="1"), "got '1'"),
        (dict(gpus=1.5), "gpus must be a whole number, or with Ray a share below 1, got 1.5"),
        (dict(gpus=0.5), 'gpus must be a whole number unless executor is "ray", got 0.5'),
        (dict(min_processes=1), 'min_processes must be left out unless executor is "ray", got 1'),
        (dict(ray_address="auto"), 'ray_address must be left out unless executor is "ray"'),
        (dict(executor="ray", min_processes=2), "min_processes must be at most processes=1, got 2"),
        (dict(shard_lines=0), "shard_lines must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        JobOptions(**options)


def test_options_are_taken_from_others():
    options = dict(beam_size=2, processes=3, shard="1/4")
    corpus = JobOptions.take(options)
    assert options == dict(beam_size=2) and corpus.processes == 3 and corpus.part == (1, 4)
    assert JobOptions.changed(dict(processes=1, executor="ray")) == dict(executor="ray")
