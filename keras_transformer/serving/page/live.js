// Live translation: the translation of a sentence only grows, while its source does.

import { arrivedSentences, splitWords } from "./words.js";

export class LiveTranslation {
  // `ask(source, written, isWhole, signal)` resolves to the text to append to the translation of a
  // sentence. `show(translation, source, isDone)` is called after each update and each answer, and
  // `fail(error)` if there is no answer.
  constructor({ ask, show, fail }) {
    Object.assign(this, { ask, show, fail });
    this.current = null; // the sentence that is being translated
    this.restart();
  }

  // Forget all sentences.
  restart() {
    this.controller?.abort();
    this.controller = new AbortController();
    this.sentences = [];
  }

  // Take the text so far. `isPaused`: see words.arrivedSentences. A sentence whose words have
  // changed, and those that follow it, are translated again.
  update(text, isPaused = false) {
    let isSame = true;
    this.sentences = arrivedSentences(text, isPaused).map((sentence, i) => {
      const earlier = this.sentences[i];
      isSame &&= earlier !== undefined && continues(sentence, earlier);
      const isNew = { sent: "", isEnded: false, written: "" };
      return Object.assign(isSame ? earlier : isNew, sentence);
    });
    this.tell();
    if (!this.current) this.run();
  }

  tell() {
    const read = this.sentences.filter(({ sent }) => sent);
    const joined = (side) => read.map((x) => x.before + x[side]).join("");
    const isDone = !this.sentences.some((x) => x === this.current || hasMore(x));
    this.show(joined("written"), joined("sent"), isDone);
  }

  async run() {
    while ((this.current = this.sentences.find(hasMore))) {
      const { current } = this;
      const { signal } = this.controller;
      const { text, written, isWhole, sent, isEnded } = current;
      const isKept = () => this.sentences.includes(current);
      try {
        Object.assign(current, { sent: text, isEnded: isWhole });
        current.written += await this.ask(text, written, isWhole, signal);
        this.current = null;
        if (isKept()) this.tell();
      } catch (error) {
        this.current = null;
        Object.assign(current, { sent, isEnded });
        if (!isKept()) continue;
        this.fail(error);
        return;
      }
    }
  }
}

const hasMore = (sentence) => sentence.sent !== sentence.text || sentence.isWhole !== sentence.isEnded;

function continues({ text, isWhole }, { sent, isEnded }) {
  if (isEnded) return isWhole && text === sent;
  const words = splitWords(text);
  return splitWords(sent).every((word, i) => word === words[i]);
}

// Show a text in an element; what continues the text there is appended, so that a screen reader
// reads only that.
export function showGrowing(element, text) {
  const shown = element.textContent;
  if (text === shown) return;
  if (text.startsWith(shown)) element.append(text.slice(shown.length));
  else element.textContent = text;
}
