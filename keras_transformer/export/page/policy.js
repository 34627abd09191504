// The policy wait-k of live translation (Ma et al. 2019), as translate/live has it.

import { joinWords, splitWords, withoutFinalMarks } from "./words.js";

const K = 3; // source words to read before the first word is written
const GREEDY = { beam_size: 1 };

// Return the text to append to what is written of a sentence's translation. `isWhole`: whether the
// sentence ends after `text`.
export async function continued(translator, text, written, isWhole, direction, pause) {
  const [source, target] = [text, written].map(splitWords);
  const count = isWhole ? Infinity : source.length - K + 1;
  if (count <= target.length) return "";
  const words = await draft(translator, joinWords(source), target, isWhole, direction, pause);
  return joinWords(words.slice(0, count)).slice(joinWords(target).length);
}

// Return the words of a translation that begins with the words written so far.
async function draft(translator, text, written, isWhole, direction, pause) {
  const [frame] = direction.target_frame;
  const first = written.length ? translator.encode("target", joinWords(written), [frame, []]) : frame;
  if (first.length >= translator.facts.max_length - 3) return written; // no room for more
  const [{ text: translation }] = await translator.nbest(text, direction, pause, first, GREEDY);
  const words = splitWords(isWhole ? translation : withoutFinalMarks(translation));
  return [...withMarks(written, words), ...words.slice(written.length)];
}

// Return the words written so far; the last one with the marks that a translation adds to it.
function withMarks(written, words) {
  if (!written.length) return [];
  const [last, repeated] = [written.at(-1), words[written.length - 1] ?? ""];
  const added = repeated.startsWith(last) ? repeated.slice(last.length) : "";
  return [...written.slice(0, -1), /[\p{L}\p{N}]/u.test(added) ? last : last + added];
}
