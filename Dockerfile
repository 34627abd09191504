# The translation server, on a CPU:
#   docker build -t keras-transformer .
#   docker run -p 5000:5000 keras-transformer
# It serves the translator of saved_models/tatoeba. With a model of your own:
#   docker run -p 5000:5000 -v "$PWD/saved_models:/models:ro" keras-transformer /models/grammar
# On a GPU, from a base that has its libraries:
#   docker build -t keras-transformer:gpu --build-arg BACKEND=jax --build-arg MORE="jax[cuda12]" \
#     --build-arg BASE=nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04 .
#   docker run --gpus all -p 5000:5000 -v "$PWD/saved_models:/models:ro" keras-transformer:gpu \
#     /models/grammar --replicas 2 --devices 0,1
ARG BASE=python:3.12-slim
FROM ${BASE}

# tensorflow, jax or torch; MORE is what else pip installs, PIP_OPTIONS such as another index.
ARG BACKEND=torch
ARG MORE=""
ARG PIP_OPTIONS=""

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# hadolint ignore=DL3008
RUN if ! command -v python3 > /dev/null; then \
      apt-get update \
      && apt-get install --yes --no-install-recommends python3 python3-venv \
      && rm -rf /var/lib/apt/lists/*; \
    fi \
    && python3 -m venv /opt/venv \
    && useradd --create-home --uid 10001 server
ENV PATH=/opt/venv/bin:$PATH KERAS_BACKEND=${BACKEND} PYTHONUNBUFFERED=1

WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY keras_transformer keras_transformer
COPY saved_models/tatoeba saved_models/tatoeba
# hadolint ignore=DL3013,SC2086
RUN pip install --no-cache-dir ${PIP_OPTIONS} --constraint constraints.txt \
      ".[${BACKEND},serve,pretrained]" ./saved_models/tatoeba ${MORE}

USER 10001
WORKDIR /models
EXPOSE 5000
HEALTHCHECK --start-period=120s CMD ["python3", "-c", \
  "import urllib.request; urllib.request.urlopen('http://127.0.0.1:5000/health', timeout=5)"]
# SIGTERM, which docker stop sends, finishes what was accepted.
ENTRYPOINT ["keras-transformer", "serve", "--host", "0.0.0.0"]
