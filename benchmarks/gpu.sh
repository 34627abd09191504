#!/usr/bin/env bash
# Measure a machine with an NVIDIA GPU and write the tables to benchmarks/results:
#
#     bash benchmarks/gpu.sh MULTI30K_FOLDER [PART ...]
#
# No GPU has been measured with it so far: benchmarks/results has tables of CPUs only.
#
# The parts, by default all in this order, are meant to take less than ten minutes each:
#
#     kernels  name the kernels that compute attention in training, prefill and steps
#     base     training steps of the base model in bfloat16, beside the peers
#     big      the same of the big model
#     train    train Transformer-Tiny on Multi30k; the same command resumes a run that was stopped
#     decode   decoding with that model, beside the peers
#
# PYTHON names the interpreter (default: .venv/bin/python); it needs the extras "all" and "bench".
# To check on a CPU that the script runs:
#
#     SIZE=toy ROWS=8 LENGTH=8 STEPS=2 EPOCHS=1 WARMUP=20 SENTENCES=16 CTRANSLATE2=int8 \
#       bash benchmarks/gpu.sh MULTI30K_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-.venv/bin/python}"
data="$1"
shift
run="${RUN:-saved_models/multi30k-gpu}"

kernels() {
  KERAS_BACKEND=torch "$python" -m pytest -q -rs tests/backend/torch/test_kernels.py
}

steps() {
  "$python" -m benchmarks.train --size "${SIZE:-$1}" --precision bfloat16 --save \
    --rows "${ROWS:-128}" --length "${LENGTH:-64}" --steps "${STEPS:-20}" \
    --only ours-torch ours-jax marian marian-eager-attention torch.nn keras-hub-torch keras-hub-jax
}

train() {
  KERAS_BACKEND=jax "$python" -m training.translation --recipe multi30k --output "$run" \
    --data-folder "$data" --workers 4 --set epochs="${EPOCHS:-60}" \
    --set warmup_steps="${WARMUP:-1000}" --set precision=mixed_bfloat16
}

decode() {
  for beam in 4 1; do
    "$python" -m benchmarks.decode "$run" --data-folder "$data" --beam-size "$beam" --save \
      --sentences "${SENTENCES:-1000}" --only ours-torch-float32 ours-torch-float16 \
      ours-torch-bfloat16 ours-jax-float32 ours-jax-bfloat16 \
      ctranslate2-"${CTRANSLATE2:-float16}" transformers-bfloat16
  done
}

[ $# -gt 0 ] || set -- kernels base big train decode
for part in "$@"; do
  case "$part" in
    kernels | train | decode) "$part" ;;
    base | big) steps "$part" ;;
    *)
      echo "PART must be kernels, base, big, train or decode, got $part" >&2
      exit 2
      ;;
  esac
done
