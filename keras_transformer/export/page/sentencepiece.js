// SentencePiece models: text to pieces and back, as the C++ library does it (BPE and unigram).

export const SPACE = "▁";
const TYPE = { normal: 1, unknown: 2, control: 3, symbol: 4, unused: 5, byte: 6 };
const UNIGRAM = 1; // of the model types; the export admits this one and BPE
const UNKNOWN_PENALTY = 10;
const REPLACEMENT = [0xef, 0xbf, 0xbd]; // U+FFFD in UTF-8

const toBytes = new TextEncoder();
const toText = new TextDecoder();

export class SentencePiece {
  // `model` is a Uint8Array with a serialized ModelProto.
  constructor(model) {
    const fields = [...fieldsOf(model)];
    const message = (number) => new Map(fieldsOf(fields.find(([field]) => field === number)?.[1]));
    const [trainer, normalizer] = [message(2), message(3)];
    const flag = (options, number, usual) => Boolean(options.get(number) ?? usual);
    this.isUnigram = (trainer.get(3) ?? UNIGRAM) === UNIGRAM;
    this.hasBytes = flag(trainer, 35, false);
    this.unknownText = trainer.has(44) ? toText.decode(trainer.get(44)) : " ⁇ ";
    this.normalizer = new Normalizer({
      charsmap: normalizer.get(2),
      addsSpace: flag(normalizer, 3, true),
      isSpaceLast: flag(trainer, 24, false),
      trims: flag(normalizer, 4, true),
      escapes: flag(normalizer, 5, true),
    });
    this.pieces = new Map(); // by text: type, and score as a float32
    for (const [field, value] of fields) {
      if (field !== 1) continue;
      const piece = new Map(fieldsOf(value));
      const type = piece.get(3) ?? TYPE.normal;
      this.pieces.set(toText.decode(piece.get(1)), { type, score: asFloat(piece.get(2)) });
    }
    const texts = [...this.pieces].filter(([, { type }]) => type === TYPE.symbol);
    this.normalizer.symbols = texts.map(([text]) => text).sort((x, y) => y.length - x.length);
    const scores = [...this.pieces.values()].filter((x) => x.type === TYPE.normal).map((x) => x.score);
    this.least = scores.reduce((x, y) => Math.min(x, y), Infinity);
    this.most = scores.reduce((x, y) => Math.max(x, y), -Infinity);
    this.longest = Math.max(...[...this.pieces.keys()].map((text) => [...text].length));
  }

  // Return the pieces of a text; text without a piece is returned as it is, or as bytes.
  encode(text) {
    const normal = this.normalizer.normalize(text);
    if (!normal) return [];
    const pieces = [];
    let isUnknown = false; // of the last piece
    for (const piece of this.isUnigram ? this.unigram(normal) : this.merged(normal)) {
      if (this.known(piece)) {
        pieces.push(piece);
        isUnknown = false;
      } else if (this.hasBytes) {
        for (const byte of toBytes.encode(piece)) pieces.push(bytePiece(byte));
      } else {
        if (isUnknown) pieces.push(pieces.pop() + piece);
        else pieces.push(piece);
        isUnknown = true;
      }
    }
    return pieces;
  }

  // Return the entry of a piece that may be found in a text.
  known(text) {
    const piece = this.pieces.get(text);
    return [TYPE.normal, TYPE.symbol, TYPE.unused].includes(piece?.type) ? piece : undefined;
  }

  // Split by the most probable path of a unigram model (Kudo 2018).
  unigram(text) {
    const characters = [...text];
    const best = characters.map(() => null).concat(null); // by end: score and start
    best[0] = { score: 0, start: 0 };
    const offer = (end, start, score) => {
      if (!best[end] || score > best[end].score) best[end] = { score: Math.fround(score), start };
    };
    for (let start = 0; start < characters.length; start++) {
      let piece = "";
      let hasCharacter = false;
      const score = best[start].score;
      for (let end = start + 1; end <= characters.length && end - start <= this.longest; end++) {
        piece += characters[end - 1];
        const entry = this.known(piece);
        if (!entry || entry.type === TYPE.unused) continue;
        const isSymbol = entry.type === TYPE.symbol;
        const own = isSymbol ? toBytes.encode(piece).length * this.most - 0.1 : entry.score;
        offer(end, start, own + score);
        if (end === start + 1) hasCharacter = true;
      }
      if (!hasCharacter) offer(start + 1, start, Math.fround(this.least - UNKNOWN_PENALTY) + score);
    }
    const pieces = [];
    for (let end = characters.length; end > 0; end = best[end].start) {
      pieces.push(characters.slice(best[end].start, end).join(""));
    }
    return pieces.reverse();
  }

  // Merge the pair of neighbours with the highest score, until no pair is a piece (BPE).
  merged(text) {
    const parts = this.characters(text); // text, and whether it may be merged
    const halves = new Map(); // of an unused piece: the pieces that it was merged from
    const scoreOf = (i) => {
      if (i < 0 || i + 1 >= parts.length || parts[i].isFixed || parts[i + 1].isFixed) return null;
      const joined = parts[i].text + parts[i + 1].text;
      const entry = this.known(joined);
      if (entry?.type === TYPE.unused) halves.set(joined, [parts[i].text, parts[i + 1].text]);
      return entry?.score ?? null;
    };
    const scores = parts.map((_, i) => scoreOf(i));
    for (;;) {
      let best = -1;
      for (let i = 0; i < scores.length; i++) {
        if (scores[i] !== null && (best < 0 || scores[i] > scores[best])) best = i;
      }
      if (best < 0) break;
      parts[best].text += parts[best + 1].text;
      parts.splice(best + 1, 1);
      scores.splice(best + 1, 1);
      scores[best] = scoreOf(best);
      if (best > 0) scores[best - 1] = scoreOf(best - 1);
    }
    const split = (piece) =>
      this.pieces.get(piece)?.type === TYPE.unused && halves.has(piece)
        ? halves.get(piece).flatMap(split)
        : [piece];
    return parts.flatMap((part) => split(part.text));
  }

  // Split a text into characters and user-defined symbols, which are never merged.
  characters(text) {
    const parts = [];
    for (let i = 0; i < text.length; ) {
      const symbol = this.normalizer.symbols.find((x) => text.startsWith(x, i));
      const part = symbol ?? String.fromCodePoint(text.codePointAt(i));
      parts.push({ text: part, isFixed: symbol !== undefined });
      i += part.length;
    }
    return parts;
  }

  // Return the text of pieces, without white space at its ends.
  decode(pieces) {
    const bytes = [];
    for (const piece of pieces) {
      const type = this.pieces.get(piece)?.type;
      if (type === TYPE.byte) bytes.push(parseInt(piece.slice(3, 5), 16));
      else if (type === TYPE.unknown) bytes.push(...toBytes.encode(this.unknownText));
      else if (type !== TYPE.control) bytes.push(...toBytes.encode(piece.replaceAll(SPACE, " ")));
    }
    return toText.decode(new Uint8Array(bytes)).trim();
  }
}

function bytePiece(byte) {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

// The normalization of a model: replacements of characters, and spaces.
class Normalizer {
  constructor(options) {
    Object.assign(this, { symbols: [] }, options);
    this.space = toBytes.encode(this.escapes ? SPACE : " ");
    if (!this.charsmap?.length) return;
    // A double-array trie of darts-clone, preceded by its size in bytes; then texts that end in 0.
    const copy = this.charsmap.slice().buffer;
    const size = new DataView(copy).getUint32(0, true);
    this.units = new Uint32Array(copy.slice(4, 4 + size));
    this.texts = new Uint8Array(copy, 4 + size);
  }

  normalize(text) {
    const input = toBytes.encode(text);
    const symbols = this.symbols.map((symbol) => toBytes.encode(symbol));
    const output = [];
    let i = 0;
    const next = () => {
      const { bytes, length } = this.prefix(input, i, symbols);
      i += length;
      return bytes;
    };
    let chunk = [];
    if (this.trims) {
      while (i < input.length && isSpace((chunk = next()))) chunk = [];
    }
    if (!chunk.length && i >= input.length) return "";
    if (this.addsSpace && !this.isSpaceLast) output.push(...this.space);
    let isAfterSpace = this.trims;
    for (;;) {
      let start = 0;
      while (isAfterSpace && chunk[start] === 0x20) start++;
      for (const byte of chunk.slice(start)) {
        if (byte === 0x20) output.push(...this.space);
        else output.push(byte);
      }
      if (start < chunk.length) isAfterSpace = chunk.at(-1) === 0x20;
      isAfterSpace &&= this.trims;
      if (i >= input.length) break;
      chunk = next();
    }
    while (this.trims && endsWith(output, this.space)) output.length -= this.space.length;
    if (this.addsSpace && this.isSpaceLast) output.push(...this.space);
    return toText.decode(new Uint8Array(output));
  }

  // Return the replacement of the longest known prefix of the input at `start`, and its length.
  prefix(input, start, symbols) {
    const symbol = symbols.find((x) => x.every((byte, k) => input[start + k] === byte));
    if (symbol) return { bytes: [...symbol], length: symbol.length };
    const match = this.units && this.lookUp(input, start);
    if (match) {
      return { bytes: [...this.texts.subarray(match.at, this.texts.indexOf(0, match.at))], ...match };
    }
    const lead = input[start];
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const bytes = [...input.subarray(start, start + length)];
    return { bytes: bytes.length < length ? REPLACEMENT : bytes, length };
  }

  lookUp(input, start) {
    const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
    let node = offset(this.units[0]);
    let match = null;
    for (let i = start; i < input.length; i++) {
      node ^= input[i];
      const unit = this.units[node];
      if ((unit & 0x800000ff) !== input[i]) break;
      node ^= offset(unit);
      if (unit & 0x100) match = { at: this.units[node] & 0x7fffffff, length: i + 1 - start };
    }
    return match;
  }
}

const isSpace = (bytes) => bytes.length === 1 && bytes[0] === 0x20;

function endsWith(bytes, end) {
  return bytes.length >= end.length && end.every((x, i) => bytes[bytes.length - end.length + i] === x);
}

function asFloat(bytes) {
  return bytes ? new DataView(bytes.buffer, bytes.byteOffset).getFloat32(0, true) : 0;
}

// Yield the number and the value of each field of a serialized protocol buffer.
function* fieldsOf(message = new Uint8Array()) {
  let place = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[place++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (place < message.length) {
    const key = varint();
    const [field, kind] = [Math.floor(key / 8), key % 8];
    if (kind === 0) {
      yield [field, varint()];
      continue;
    }
    const size = kind === 2 ? varint() : kind === 1 ? 8 : 4;
    yield [field, message.subarray(place, place + size)];
    place += size;
  }
}
