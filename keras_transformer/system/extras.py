"""The optional dependencies, and the error for a missing one."""

from __future__ import annotations

# A copy of the users' extras in pyproject.toml: a checkout on the import path has no metadata to
# read. Errors show a command that installs the packages, not the extra, which pip would look for in
# its index.
PACKAGES = {
    "tensorflow": ("tensorflow>=2.20,<2.22", "tensorflow-text>=2.20,<2.22"),
    "jax": ("jax>=0.4.38",),
    "torch": ("torch>=2.6",),
    "hub": ("keras-hub>=0.20",),
    "moses": ("sacremoses>=0.1.1",),
    "rouge": ("rouge-score>=0.1.2",),
    "tensorboard": ("tensorboardX>=2.6",),
    "pretrained": ("huggingface_hub>=0.34", "langcodes>=3.4", "pyyaml>=6", "tokenizers>=0.21"),
    "chat": ("jinja2>=3.1",),
    "gguf": ("gguf>=0.17",),
    "ctranslate2": ("ctranslate2>=4.6",),
    "onnx": ("onnx>=1.18", "onnxruntime>=1.22", "onnxscript>=0.5"),
    "litert": ("ai-edge-litert>=2.1",),
    "entities": ("seqeval>=1.2",),
    "images": ("pillow>=10",),
    "plots": ("matplotlib>=3.8",),
    "report": ("jinja2>=3.1",),
    "serve": (
        "babel>=2.14",
        "fastapi>=0.115",
        "fastapi-offline>=1.7",
        "limits>=4",
        "lxml>=5",
        "markdown-it-py>=3",
        "prometheus-client>=0.20",
        "py3langid>=0.4",
        "python-multipart>=0.0.20",
        "sentencex>=1.0.30",
        "uvicorn>=0.32",
    ),
    "traces": ("opentelemetry-sdk>=1.30", "opentelemetry-exporter-otlp-proto-http>=1.30"),
    "clean": ("datasketch>=2", "langcodes>=3.4", "py3langid>=0.4"),
    "corpora": ("pyarrow>=17", "zstandard>=0.22"),
    "ray": ("ray[data]>=2.60,<3",),
}


def pip_install(*extras: str) -> str:
    """Return the pip command that installs the packages of these extras."""
    packages = [f'"{package}"' for extra in extras for package in PACKAGES[extra]]
    return " ".join(["pip install", *packages])


def missing(purpose: str, *extras: str) -> ImportError:
    """Return the error to raise when a package of an extra is not installed.

    Args:
        purpose: The subject of the message, for example "reading images".
        extras: The extras that contain the package; keys of `PACKAGES`.
    """
    names = " and ".join(f'"{extra}"' for extra in extras)
    many = "s" if len(extras) > 1 else ""
    return ImportError(f"{purpose} needs the extra{many} {names}: {pip_install(*extras)}")
