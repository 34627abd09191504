// The ONNX graphs of an encoder and a decoder step, run by onnxruntime-web.

export class Graphs {
  // `runtime` is the module of onnxruntime-web.
  constructor(runtime, encoder, decoder) {
    Object.assign(this, { runtime, encoder, decoder });
    this.hasPosition = decoder.inputNames.includes("position");
  }

  static async load(runtime, encoder, decoder) {
    const options = { executionProviders: ["wasm"] };
    const sessions = [encoder, decoder].map((x) => runtime.InferenceSession.create(x, options));
    return new Graphs(runtime, ...(await Promise.all(sessions)));
  }

  integers(ids, shape) {
    return new this.runtime.Tensor("int64", BigInt64Array.from(ids, BigInt), shape);
  }

  // Return the encoder's outputs, by name, repeated for each of `rows` beams.
  async encode(sourceIds, rows) {
    const source_ids = this.integers(sourceIds, [1, sourceIds.length]);
    const outputs = await this.encoder.run({ source_ids });
    return this.chosen(outputs, Array(rows).fill(0));
  }

  // Return caches of no tokens: keys and values (rows, N, 0, H), or states of zeros.
  empty(rows) {
    const entries = this.decoder.inputMetadata.filter(({ name }) => name.startsWith("past_"));
    return Object.fromEntries(
      entries.map(({ name, shape }) => {
        const sizes = [rows, ...shape.slice(1).map((x) => (typeof x === "number" ? x : 0))];
        const values = new Float32Array(sizes.reduce((x, y) => x * y));
        return [name, new this.runtime.Tensor("float32", values, sizes)];
      }),
    );
  }

  // Return the logits of the next token, the new caches, and the weights of cross-attention.
  async step(tokens, position, memory, past) {
    const inputs = { token_ids: this.integers(tokens, [tokens.length, 1]), ...memory, ...past };
    if (this.hasPosition) inputs.position = this.integers([position], []);
    const { logits, attention, ...present } = await this.decoder.run(inputs);
    const entries = Object.entries(present);
    const renamed = entries.map(([name, tensor]) => [name.replace("present", "past"), tensor]);
    return { logits: logits.data, attention, present: Object.fromEntries(renamed) };
  }

  // Return these rows of each tensor.
  chosen(tensors, rows) {
    const take = ({ data, dims: [count, ...dims] }) => {
      const size = data.length / count;
      const values = new Float32Array(rows.length * size);
      rows.forEach((row, i) => values.set(data.subarray(row * size, (row + 1) * size), i * size));
      return new this.runtime.Tensor("float32", values, [rows.length, ...dims]);
    };
    return Object.fromEntries(Object.entries(tensors).map(([name, x]) => [name, take(x)]));
  }
}
