// The policy wait-k of live translation (Ma et al. 2019), as translate/live has it.

import { joinWords, splitWords, withoutFinalMarks } from "./words.js";

const K = 3; // source words to read before the first word is written
const GREEDY = { beam_size: 1 };

// Return the text to append to what is written of a sentence's translation. `isWhole`: whether the
// sentence ends after `text`.
export async function continued(translator, text, written, isWhole, direction, pause) {
  const [source, before] = [text, written].map(splitWords);
  const count = isWhole ? Infinity : source.length - K + 1;
  if (count <= before.length) return "";
  const after = await draft(translator, joinWords(source), before, isWhole, direction, pause);
  return joinWords(after.slice(0, count)).slice(joinWords(before).length);
}

// Return the words of a translation that begins with the words written before.
async function draft(translator, text, before, isWhole, direction, pause) {
  const [frame] = direction.target_frame;
  const first = before.length ? translator.encode("target", joinWords(before), [frame, []]) : frame;
  if (first.length >= translator.facts.max_length - 3) return before; // no room for more
  const [{ text: translation }] = await translator.nbest(text, direction, pause, first, GREEDY);
  const words = splitWords(isWhole ? translation : withoutFinalMarks(translation));
  return [...withMarks(before, words), ...words.slice(before.length)];
}

// Return the words written before; the last one with the marks that a translation adds to it.
function withMarks(before, words) {
  if (!before.length) return [];
  const [last, again] = [before.at(-1), words[before.length - 1] ?? ""];
  const added = again.startsWith(last) ? again.slice(last.length) : "";
  return [...before.slice(0, -1), /[\p{L}\p{N}]/u.test(added) ? last : last + added];
}
