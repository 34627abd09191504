// The attention of a sentence: controls for part, layer and heads, and the picture.

import { fit, heatMap, percent } from "./heatmap.js";
import { headClass, lines } from "./lines.js";
import { label, tokensOf } from "./pieces.js";
import { Scroller } from "./scroller.js";
import { hovers } from "./touch.js";

const TOP = 5; // number of tokens that the readout names

// The meaning of rows and columns of each part's weights. A row of the decoder is the query that
// predicts a token of the translation; its columns are the tokens that have been read so far.
const PARTS = {
  encoder: {
    rows: ["source", "Text"],
    columns: ["source", "Text"],
    says: { rows: ["", " looks at "], columns: ["", " is looked at by "] },
  },
  decoder: {
    rows: ["target", "Translation"],
    columns: ["input", "Read so far"],
    says: {
      rows: ["To write ", ", the model looks back at "],
      columns: ["", " is looked at to write "],
    },
  },
  cross: {
    rows: ["target", "Translation"],
    columns: ["source", "Text"],
    says: {
      rows: ["To write ", ", the model looks at "],
      columns: ["", " is looked at to write "],
    },
  },
};
const HINTS = {
  map: "The weights of a row sum to 100 %.",
  lines: "Weights below 2 % have no line.",
};

function hint(kind, hasPieces) {
  const thing = { map: "row", lines: "word" }[kind];
  const act = hovers() ? `Point at a ${thing}, or use the arrow keys.` : `Tap a ${thing}.`;
  const pieces = hasPieces ? " A hyphen at the start marks a piece that continues a word." : "";
  return `${act} ${HINTS[kind]}${pieces}`;
}

// Split a text into sentences, roughly: well enough to choose one of them.
function sentences(text) {
  const parts = text.split(/\n+|(?<=[.!?…])\s+|(?<=[。！？])/u);
  return parts.map((part) => part.trim()).filter(Boolean);
}

function mean(matrices) {
  return matrices[0].map((row, i) =>
    row.map((_, j) => matrices.reduce((sum, matrix) => sum + matrix[i][j], 0) / matrices.length),
  );
}

export class AttentionView {
  // `ask(body, { signal, say })` returns the answer of the server's route /attention.
  constructor(dialog, ask) {
    Object.assign(this, { dialog, ask });
    this.find = (selector) => dialog.querySelector(selector);
    this.scroller = new Scroller(this.find("#picture"), this.find("#more"), () => this.fit());
    this.find("#close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => this.running?.abort());
    this.find("#sentence").addEventListener("change", () => this.load());
    this.find(".controls").addEventListener("change", () => this.draw());
  }

  // Open at the sentence of the cursor: the last one in the text `before` it.
  open({ q, source, target, translations }, before) {
    const texts = sentences(q);
    this.request = { source, target };
    // For a text of one sentence, show the attention of the translation on the page.
    this.translation = texts.length === 1 ? translations[0].trim() : undefined;
    const select = this.find("#sentence");
    select.replaceChildren(...texts.map((text, i) => new Option(`${1 + i}. ${text}`, text)));
    select.selectedIndex = Math.min(Math.max(sentences(before).length, 1), texts.length) - 1;
    this.find("#sentence-field").hidden = texts.length === 1;
    this.find("#pair-source").hidden = texts.length > 1;
    if (!this.dialog.open) this.dialog.showModal();
    this.load();
  }

  async load() {
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    const q = this.find("#sentence").value;
    this.found = null;
    this.find("#picture").replaceChildren();
    this.pair(q, "");
    const say = (words) => this.find("#readout").replaceChildren(words);
    say("Loading …");
    try {
      const body = { ...this.request, q, translation: this.translation };
      const found = await this.ask(body, { signal, say });
      if (signal.aborted) return;
      this.found = found;
      this.pair(q, found.translation);
      this.choices();
      this.draw();
    } catch (error) {
      if (!signal.aborted) say(`The attention cannot be shown: ${error.message}`);
    }
  }

  pair(source, target) {
    this.find("#pair-source").textContent = source;
    this.find("#pair-target").textContent = target;
  }

  // Fill the controls for layers and heads; keep the choice if the numbers are the same.
  choices() {
    const { cross, encoder } = this.found;
    const layers = Math.max(cross.length, encoder.length);
    const heads = cross[0].length;
    const select = this.find("#layer");
    if (select.length === layers && this.numHeads === heads) return;
    this.numHeads = heads;
    select.replaceChildren(...Array.from({ length: layers }, (_, i) => new Option(1 + i, i)));
    select.value = cross.length - 1;
    const numbers = Array.from({ length: heads }, (_, i) => i);
    const ones = [choice("radio", "Mean", "mean"), ...numbers.map((i) => choice("radio", 1 + i, i))];
    const some = numbers.map((i) => choice("checkbox", 1 + i, i));
    some.forEach((label, i) => label.classList.add(headClass(i)));
    some.forEach((label) => (label.firstChild.checked = true));
    ones[0].firstChild.checked = true;
    this.find("#one-head").replaceChildren(this.find("#one-head legend"), ...ones);
    this.find("#some-heads").replaceChildren(this.find("#some-heads legend"), ...some);
  }

  chosen(name) {
    return this.find(`input[name=${name}]:checked`).value;
  }

  draw() {
    if (!this.found) return;
    const [part, kind] = [this.chosen("part"), this.chosen("view")];
    const layers = this.found[part];
    const select = this.find("#layer");
    [...select.options].forEach((option) => (option.disabled = option.value >= layers.length));
    if (select.value >= layers.length) select.value = layers.length - 1;
    this.find("#one-head").hidden = kind !== "map";
    this.find("#some-heads").hidden = kind !== "lines";
    this.find("#scale").hidden = kind !== "map";
    const { rows, columns } = PARTS[part];
    const labels = {
      rows: tokensOf(this.found, rows[0]),
      columns: tokensOf(this.found, columns[0]),
      rowTitle: rows[1],
      columnTitle: columns[1],
    };
    const heads = layers[select.value];
    const say = (pointed) => this.say(part, labels, pointed);
    let picture;
    if (kind === "map") {
      const head = this.chosen("one-head");
      picture = heatMap(head === "mean" ? mean(heads) : heads[head], labels, say);
    } else {
      const boxes = [...this.dialog.querySelectorAll("#some-heads input")];
      const numbers = boxes.filter((box) => box.checked).map((box) => Number(box.value));
      picture = lines(heads, numbers, labels, say);
    }
    this.find("#picture").replaceChildren(picture);
    this.scroller.show();
    say();
  }

  fit() {
    const picture = this.find("#picture");
    const map = picture.querySelector("table");
    if (map) fit(map, picture.clientWidth, picture.clientHeight);
    // Keep a focused cell from scrolling beneath the map's sticky labels.
    const { offsetHeight = 0, offsetWidth = 0 } = map?.rows[0].cells[0] ?? {};
    picture.style.scrollPadding = `${offsetHeight}px 0 0 ${offsetWidth}px`;
  }

  // Name the largest weights between one token and those of the other side, and the weight of the
  // token with index `here` there, if given.
  say(part, labels, pointed) {
    const readout = this.find("#readout");
    readout.classList.toggle("hint", !pointed);
    const hasPieces = [...labels.rows, ...labels.columns].some(({ continues }) => continues);
    if (!pointed) return readout.replaceChildren(hint(this.chosen("view"), hasPieces));
    const { side, place, weights, here } = pointed;
    const others = side === "rows" ? labels.columns : labels.rows;
    const named = (i) => [label(others[i], "bdi"), ` ${percent(weights[i])}`];
    const order = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a]);
    const best = order.slice(0, TOP).filter((i) => weights[i] >= 0.01);
    const [before, after] = PARTS[part].says[side];
    const words = [before, label(labels[side][place], "bdi"), after];
    words.push(...best.flatMap((i, k) => (k ? [", ", ...named(i)] : named(i))), ".");
    if (here !== undefined) words.push(" Here: ", ...named(here), ".");
    readout.replaceChildren(...words);
  }
}

function choice(type, text, value) {
  const [label, input, span] = ["label", "input", "span"].map((x) => document.createElement(x));
  Object.assign(input, { type, value, name: type === "radio" ? "one-head" : "some-heads" });
  span.textContent = text;
  label.append(input, span);
  return label;
}
