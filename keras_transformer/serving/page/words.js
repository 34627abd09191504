// Words and sentences of a text that arrives, as text/word_spans.py and text/arriving_text.py
// find them.

const LETTER = "\\p{L}\\p{N}_"; // what \w matches in Python
// Thai, Lao, Burmese, Khmer, kana and Chinese characters: written without spaces.
const UNSPACED = "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u9fff";
const WIDE = `[${UNSPACED}\\u3000-\\u303f\\uff00-\\uffef]`; // with their punctuation
const WORD = `[${UNSPACED}][^${LETTER}\\s]*|[^\\s${UNSPACED}]+`;
const WORDS = new RegExp(WORD, "gu");
const WORDS_AND_BREAKS = new RegExp(`\\n|${WORD}`, "gu");
const EXTRA_SPACE = new RegExp(`(?<=${WIDE}) | (?=${WIDE})`, "gu");
const MARKS = ".!?…。！？";
const END = new RegExp(`[${MARKS}]+["'”’“»)\\]」』]*$`, "u");
const FINAL_MARKS = new RegExp(`[${MARKS} ]+$`, "u");
const TITLES = "Mr|Mrs|Ms|Mme|Dr|Prof|Sr|Jr|St|Nr|No|vs|bzw|ca|approx";
const ABBREVIATION = new RegExp(
  `^[^${LETTER}]*(?:\\p{Nd}+|[\\p{L}\\p{Nl}\\p{No}]|[${LETTER}]+\\.[${LETTER}.]*[${LETTER}]|${TITLES})\\.$`,
  "u",
);

export const splitWords = (text) => text.match(WORDS) ?? [];

export const joinWords = (words) => words.join(" ").replace(EXTRA_SPACE, "");

export const withoutFinalMarks = (text) => text.replace(FINAL_MARKS, "");

export const endsSentence = (word) => END.test(word) && !ABBREVIATION.test(word);

// Return the sentences { before, text, isWhole } of a text: the white space before each, its words
// that are whole, and whether it ends after them. The last word of the text may still grow: it is
// left out, unless `isPaused` and the word ends a sentence.
export function arrivedSentences(text, isPaused = false) {
  const sentences = [];
  let open = null;
  let start = 0;
  let end = 0;
  for (const { 0: match, index } of text.matchAll(WORDS_AND_BREAKS)) {
    const isBreak = match === "\n";
    if (isBreak && !open) continue;
    const after = index + match.length;
    if (!isBreak) {
      if (after === text.length && !(isPaused && endsSentence(match))) break;
      if (!open) {
        open = { before: text.slice(end, index), text: "", isWhole: false };
        sentences.push(open);
        start = index;
      }
      end = after;
      open.text = text.slice(start, end);
    }
    if (isBreak || endsSentence(match)) {
      open.isWhole = true;
      open = null;
    }
  }
  return sentences;
}
