// A translator: tokenizer, graphs and search, from texts to texts.

import { beamSearch, OPTIONS } from "./search.js";
import { SPACE, SentencePiece } from "./sentencepiece.js";

export class Translator {
  // `facts` is the content of translator.json; `models` are serialized SentencePiece models.
  constructor(graphs, facts, models) {
    Object.assign(this, { graphs, facts });
    this.options = { ...OPTIONS, ...facts.search };
    this.source = new SentencePiece(models.source);
    this.target = new SentencePiece(models.target);
    const idsOf = (pieces) => new Map(pieces.map((piece, id) => [piece, id]));
    this.ids = { source: idsOf(facts.source_pieces), target: idsOf(facts.target_pieces) };
    this.symbols = facts.symbols ? new RegExp(`(${facts.symbols})`, "su") : null;
  }

  direction(source, target) {
    const { directions } = this.facts;
    return directions.find((x) => (x.source ?? "") === source && (x.target ?? "") === target);
  }

  // Return the ids of a text within a frame of special ids, cut to the model's length.
  encode(side, text, [before, after]) {
    const parts = side === "source" && this.symbols ? text.split(this.symbols) : [text];
    // Symbols such as ">>fra<<" are pieces themselves: they are at odd places.
    const pieces = parts.flatMap((part, i) => (i % 2 ? [part] : this[side].encode(part)));
    const ids = pieces.map((piece) => this.ids[side].get(piece) ?? this.facts.unk_id);
    const room = this.facts.max_length - before.length - after.length;
    return ids.length ? [...before, ...ids.slice(0, room), ...after] : [];
  }

  decode(ids) {
    const kept = ids.filter((id) => !this.facts.skipped_ids.includes(id));
    return this.target.decode(kept.map((id) => this.facts.target_pieces[id]));
  }

  // Return the translations of a sentence that the search finds, with their scores, best first.
  // `first`: ids that they begin with.
  async nbest(text, direction, pause = async () => {}, first = direction.target_frame[0], options = {}) {
    const ids = this.encode("source", text, direction.source_frame);
    if (!ids.length) return [{ text: "", score: 0 }];
    const search = { ...this.options, ...options };
    const found = await beamSearch(this.graphs, ids, first, search, this.facts, pause);
    return found.map(({ ids, score }) => ({ text: this.decode(ids), score }));
  }

  // Return the cross-attention of a sentence and its translation, as /attention of the server does.
  async attention(text, translation, direction, pause = async () => {}) {
    const sourceIds = this.encode("source", text, direction.source_frame);
    const targetIds = this.encode("target", translation, direction.target_frame);
    if (!sourceIds.length || !targetIds.length) throw new Error("there are no words");
    const memory = await this.graphs.encode(sourceIds, 1);
    let past = this.graphs.empty(1);
    const weights = []; // by token of the translation: (1, L, N, S)
    for (const [i, id] of [this.facts.bos_id, ...targetIds.slice(0, -1)].entries()) {
      await pause();
      const { attention, present } = await this.graphs.step([id], i, memory, past);
      weights.push(attention);
      past = present;
    }
    const [, layers, heads, length] = weights[0].dims;
    const row = ({ data }, layer, head) => {
      const start = (layer * heads + head) * length;
      return [...data.subarray(start, start + length)];
    };
    const numbers = (count) => Array.from({ length: count }, (_, i) => i);
    const cross = numbers(layers).map((layer) =>
      numbers(heads).map((head) => weights.map((x) => row(x, layer, head))),
    );
    const shown = { ...this.labels("source", sourceIds), ...this.labels("target", targetIds) };
    return { translation, ...shown, cross, encoder: [], decoder: [] };
  }

  // Return the names of tokens, and whether each continues the word before it.
  labels(side, ids) {
    const pieces = ids.map((id) => this.facts[`${side}_pieces`][id]);
    const isSpecial = (id) => this.facts.skipped_ids.includes(id);
    const text = (piece) => piece.replaceAll(SPACE, "") || SPACE;
    const isPart = (i) => i > 0 && !isSpecial(ids[i]) && !pieces[i].startsWith(SPACE);
    return {
      [`${side}_tokens`]: pieces.map(text),
      [`${side}_continues`]: pieces.map((piece, i) => isPart(i) && /[\p{L}\p{N}]/u.test(piece)),
    };
  }
}
