"""A server: the APIs of LibreTranslate, TensorFlow Serving and OpenAI, and a web page."""

from __future__ import annotations

from keras_transformer.system.extras import missing

try:
    import babel  # noqa: F401
    import fastapi_offline  # noqa: F401
    import limits  # noqa: F401
    import prometheus_client  # noqa: F401
    import python_multipart  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise missing("serving", "serve") from error

from keras_transformer.serving.app import create_app
from keras_transformer.serving.catalogue import Catalogue
from keras_transformer.serving.connections import listen, run, tls_files
from keras_transformer.serving.logs import configure
from keras_transformer.serving.replicas import Replicas
from keras_transformer.serving.settings import Settings
from keras_transformer.serving.traces import Tracer

__all__ = [
    "Catalogue",
    "Replicas",
    "Settings",
    "Tracer",
    "configure",
    "create_app",
    "listen",
    "run",
    "tls_files",
]
