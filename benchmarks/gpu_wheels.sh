#!/usr/bin/env bash
# Collect as wheels, less than 64 MB in all, what `benchmarks/gpu.sh` needs on a Linux machine (x86-64)
# without a network that has PyTorch and JAX with CUDA, transformers, sacrebleu, sentencepiece, typer
# and pytest:
#
#     bash benchmarks/gpu_wheels.sh OUT [PYTHON_VERSION]     (default: 3.12)
#
# On that machine, in the checkout:
#
#     python3 -m pip install --no-index --no-deps --target SITE OUT/*.whl
#     PYTHONPATH=SITE PYTHON=python3 bash benchmarks/gpu.sh PART DATA
set -euo pipefail
out="$(realpath --canonicalize-missing "${1:?OUT is missing}")"
version="${2:-3.12}"
cd "$(dirname "$0")/.."
platforms=()
for number in 2_39 2_35 2_34 2_31 2_28 2_27 2_24 2_17; do
  platforms+=(--platform "manylinux_${number}_x86_64")
done
python3 -m pip download --quiet --no-deps --only-binary=:all: --constraint constraints.txt \
  --implementation cp --python-version "$version" "${platforms[@]}" --platform manylinux2014_x86_64 \
  --platform manylinux1_x86_64 --dest "$out" keras namex optree grain array_record portpicker \
  keras-hub kagglehub kagglesdk ctranslate2
du --apparent-size --summarize --block-size=1MB "$out"
