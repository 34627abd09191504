#!/usr/bin/env bash
# Measure a machine with an NVIDIA GPU and write the tables to benchmarks/results:
#
#     bash benchmarks/gpu.sh PART [DATA]
#
# DATA, by default KT_DATA, is the folder of the data sets: multi30k, tinyshakespeare, tatoeba-en-de,
# tatoeba-en-es, tatoeba-en-fr. A part is meant to take at most four minutes, d at most ten:
#
#     base     training steps of the base model in bfloat16, beside the peers
#     big      the same of the big model
#     a        base and big, twice as long
#     b        decoding on JAX, with the seconds of its compilation, beside PyTorch and CTranslate2
#     c        nanoGPT's Shakespeare on JAX and PyTorch; BACKENDS="jax" is one of them
#     d        the model of saved_models/tatoeba on PyTorch (JAX would compile its evaluation for
#              minutes), WIDTH wide (default: 768), for EPOCHS epochs of each of its two runs (default: 4)
#     kernels  test recorded searches, and name the kernels of attention in training and steps
#     train    train Transformer-Tiny on Multi30k, on PyTorch
#     decode   decoding on PyTorch, beside the peers, at once and one by one
#
# The same command resumes the trainings of c, d and train. `b` and `decode` measure MODEL, a saved
# translator, by default that of `train`, which they make if it is missing. PYTHON names the
# interpreter (default: .venv/bin/python); it needs the extras "all" and "bench". For a machine
# without a network, `benchmarks/gpu_wheels.sh` collects the packages.
# CTranslate2 (4.8) looks for libcublas.so.12; CUDA 13's library does under that name.
# TOY=1 makes everything tiny, and no tables: a check, on a CPU too, that a part runs.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-.venv/bin/python}"
part="${1:?PART is missing}"
data="${2:-${KT_DATA:?name the folder of the data sets: KT_DATA=DATA, or a second argument}}"
models="saved_models/gpu${TOY:+-toy}"
model="${MODEL:-$models/multi30k}"
backends="${BACKENDS:-jax torch}"
width="${WIDTH:-768}"

# What a toy changes.
save=(--save) measured=(--precision bfloat16 --rows 128 --length 64 --steps 20)
recipe=(--set epochs=20 --set precision=mixed_bfloat16) sentences=200 half=float16 short=() limit=1000
tatoeba=("model.d_model=$width" "model.d_ff=$((4 * width))" "model.num_heads=$((width / 64))")
tatoeba+=("epochs=${EPOCHS:-3}" tokens_per_batch=32768 packed_length=128 peak_learning_rate=0.001)
tatoeba+=(precision=mixed_bfloat16)
if [ -n "${TOY:-}" ]; then
  save=() measured=(--precision float32 --rows 4 --length 8 --steps 2 --rounds 1)
  recipe=(--set epochs=1 --set vocab_size=600 --set warmup_steps=2)
  sentences=8 half=int8 short=(--short) limit=8
  tatoeba=(model.d_model=16 model.d_ff=32 model.num_heads=2 epochs=1 vocab_size=600)
  tatoeba+=(packed_length=64 tokens_per_batch=1024)
  for file in "$data"/{multi30k,tinyshakespeare,tatoeba-en-??}/*.gz; do
    mkdir -p "$(dirname "$models/data/${file#"$data/"}")"
    gzip -cd "$file" | sed -n 1,200p | gzip > "$models/data/${file#"$data/"}"
  done
  data="$models/data"
fi

kernels() {
  CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}" KERAS_BACKEND=torch "$python" -m pytest -q -rs \
    tests/backend/torch/test_cuda_graphs.py tests/backend/torch/test_kernels.py
}

# Two tables of five processes each, which start together on 15 cores.
steps() {
  local size="${TOY:+toy}"
  step_times "${size:-$1}" torch ours-jax ours-torch marian marian-compiled
  step_times "${size:-$1}" keras ours-jax torch.nn keras-hub-torch keras-hub-jax
}

step_times() {
  "$python" -m benchmarks.train --size "$1" --part "$2" --only "${@:3}" "${measured[@]}" "${save[@]}"
}

train() {
  KERAS_BACKEND=torch "$python" -m training.translation --recipe multi30k --output "$model" \
    --data-folder "$data/multi30k" --workers 4 "${recipe[@]}"
}

compete() {
  [ -e "$model/config.json" ] || train
  "$python" -m benchmarks.decode "$model" --data-folder "$data/multi30k" "${save[@]}" \
    --sentences "$sentences" --only "$@"
}

decode() {
  local ours=(ours-torch-float32 "ours-torch-$half")
  local theirs=(ctranslate2-float32 "ctranslate2-$half")
  compete "${ours[@]}" "${theirs[@]}" transformers-float32
  compete "${ours[@]}" "${theirs[@]}" --one-by-one
}

shakespeare() {
  # shellcheck disable=SC2086 # the names of backends
  "$python" -m benchmarks.nanogpt --text "$data/tinyshakespeare/input.txt.gz" \
    --output "$models/nanogpt" --backends $backends "${short[@]}" "${save[@]}"
}

largest() {
  local name="$models/tatoeba-$width"
  export KERAS_BACKEND=torch
  "$python" -m training.tatoeba --data-folder "$data" --output "$name" "${tatoeba[@]/#/--set=}"
  "$python" -m benchmarks.many_pairs "$name" --data "$data" --limit "$limit" --beam-size 4 \
    --length-penalty 0.6 "${save[@]}"
}

case "$part" in
  kernels | train | decode) "$part" ;;
  base | big) steps "$part" ;;
  a) steps base && steps big ;;
  b) compete ctranslate2-float32 ours-torch-float32 ours-jax-float32 ours-jax-bfloat16 --part jax ;;
  c) shakespeare ;;
  d) largest ;;
  *)
    echo "PART must be a, b, c, d, base, big, kernels, train or decode, got $part" >&2
    exit 2
    ;;
esac
