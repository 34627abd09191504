"""Whatever is asked, by our own OpenAPI document or against it, the server does not fail."""

import contextlib

import hypothesis
import schemathesis
from fastapi.testclient import TestClient

from keras_transformer.serving import Catalogue, Settings, create_app
from keras_transformer.serving.task_models import TaskModel
from tests.fuzz.outcome import COUNTS, fuzz

SETTINGS = fuzz(2, share=60, seconds=60)  # 30 operations, as their document says and against it
MODES = schemathesis.GenerationMode


class OneForAllNames(dict):
    """Models by name, the first of them by any other name."""

    def get(self, name, default=None):
        return next(iter(self.values()))


def test_no_request_fails(folders, writer_folder, task_folders):
    catalogue = Catalogue.load([*folders, writer_folder, *task_folders.values()])
    catalogue.writers = OneForAllNames(catalogue.writers)
    every = {task: tool for one in catalogue.tools.values() for task, tool in one.tools.items()}
    catalogue.tools = OneForAllNames(all=TaskModel("all", every))  # no request must name it
    limits = dict(most_characters=100, most_alternatives=2, most_waiting=300)
    app = create_app(lambda: catalogue, Settings(**limits))
    with TestClient(app):
        schema = schemathesis.openapi.from_asgi("/openapi.json", app)
        operations = [found.ok() for found in schema.get_all_operations()]
        assert len(operations) >= 30
        for operation in operations:
            for mode in (MODES.POSITIVE, MODES.NEGATIVE):

                @SETTINGS
                @hypothesis.given(operation.as_strategy(generation_mode=mode))
                def check(case):
                    response = case.call()
                    assert response.status_code < 500, response.text
                    found = "refused" if response.status_code >= 400 else "read"
                    COUNTS["requests", found] += 1

                # Where nothing is asked for, nothing can be asked wrongly.
                with contextlib.suppress(hypothesis.errors.Unsatisfiable):
                    check()
