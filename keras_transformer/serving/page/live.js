// Live translation: the translation of a sentence only grows, while its source does.

import { arrivedSentences, splitWords } from "./words.js";

export class LiveTranslation {
  // `ask(source, written, isWhole)` resolves to the text to append to the translation of a
  // sentence; `show(translation, source)` is called after each answer, `fail(error)` if there is
  // none.
  constructor({ ask, show, fail }) {
    Object.assign(this, { ask, show, fail });
    this.restart();
    this.isRunning = false;
  }

  restart() {
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
    this.run();
  }

  tell() {
    const read = this.sentences.filter(({ sent }) => sent);
    const joined = (side) => read.map((x) => x.before + x[side]).join("");
    this.show(joined("written"), joined("sent"));
  }

  async run() {
    if (this.isRunning) return;
    this.isRunning = true;
    try {
      for (let next; (next = this.sentences.find(hasMore)); ) {
        const { text, written, isWhole } = next;
        Object.assign(next, { sent: text, isEnded: isWhole });
        next.written += await this.ask(text, written, isWhole);
        if (this.sentences.includes(next)) this.tell();
      }
    } catch (error) {
      this.restart();
      this.fail(error);
    } finally {
      this.isRunning = false;
    }
  }
}

const hasMore = (sentence) => sentence.sent !== sentence.text || sentence.isWhole !== sentence.isEnded;

function continues({ text, isWhole }, { sent, isEnded }) {
  if (isEnded) return isWhole && text === sent;
  const words = splitWords(text);
  return splitWords(sent).every((word, i) => word === words[i]);
}

// Show a text in an element; one that continues the text there is appended, so that a screen reader
// reads only what is new.
export function showGrowing(element, text) {
  const shown = element.textContent;
  if (text.startsWith(shown)) element.append(text.slice(shown.length));
  else element.textContent = text;
}
