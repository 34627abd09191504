#!/usr/bin/env bash
# Measure a machine with an NVIDIA GPU and write the tables to benchmarks/results:
#
#     bash benchmarks/gpu.sh MULTI30K_FOLDER [PART ...]
#
# The parts, by default all in this order, are meant to take less than ten minutes each:
#
#     kernels  test recorded searches, and name the kernels of attention in training and steps
#     train    train Transformer-Tiny on Multi30k; the same command resumes a run that was stopped
#     decode   decoding with that model, beside the peers, at once and one by one
#     jax      the same on JAX, which compiles for minutes
#     base     training steps of the base model in bfloat16, beside the peers
#     big      the same of the big model
#
# PYTHON names the interpreter (default: .venv/bin/python); it needs the extras "all" and "bench".
# MODEL names a saved translator for "decode" and "jax" in place of the one that "train" makes.
# CTranslate2 (4.8) looks for libcublas.so.12; CUDA 13's library does under that name.
# To check on a CPU that the script runs:
#
#     SIZE=toy ROWS=8 LENGTH=8 STEPS=2 EPOCHS=1 WARMUP=20 SENTENCES=16 CTRANSLATE2=int8 \
#       bash benchmarks/gpu.sh MULTI30K_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-.venv/bin/python}"
data="$1"
shift
model="${MODEL:-saved_models/multi30k-gpu}"

kernels() {
  CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}" KERAS_BACKEND=torch "$python" -m pytest -q -rs \
    tests/backend/torch/test_cuda_graphs.py tests/backend/torch/test_kernels.py
}

train() {
  KERAS_BACKEND=torch "$python" -m training.translation --recipe multi30k --output "$model" \
    --data-folder "$data" --workers 4 --set epochs="${EPOCHS:-20}" \
    --set warmup_steps="${WARMUP:-1000}" --set precision=mixed_bfloat16
}

decode() {
  local ours=(ours-torch-float32 ours-torch-float16)
  local theirs=(ctranslate2-float32 ctranslate2-"${CTRANSLATE2:-float16}")
  compete "${ours[@]}" "${theirs[@]}" transformers-float32
  compete "${ours[@]}" "${theirs[@]}" --one-by-one
}

jax() { compete ours-torch-float32 ours-jax-float32 --part jax; }

compete() {
  "$python" -m benchmarks.decode "$model" --data-folder "$data" --save \
    --sentences "${SENTENCES:-200}" --only "$@"
}

steps() {
  "$python" -m benchmarks.train --size "${SIZE:-$1}" --precision bfloat16 --save \
    --rows "${ROWS:-128}" --length "${LENGTH:-64}" --steps "${STEPS:-20}" \
    --only ours-torch ours-jax marian marian-eager-attention torch.nn keras-hub-torch keras-hub-jax
}

[ $# -gt 0 ] || set -- kernels train decode jax base big
for part in "$@"; do
  case "$part" in
    kernels | train | decode | jax) "$part" ;;
    base | big) steps "$part" ;;
    *)
      echo "PART must be kernels, train, decode, jax, base or big, got $part" >&2
      exit 2
      ;;
  esac
done
