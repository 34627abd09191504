// Sentences of a text: models translate one at a time.

// The end of a part that is probably an abbreviation, such as "Mrs." or "J.": it has no vowels.
const ABBREVIATION = /(^|[\s(])\p{Lu}[b-df-hj-np-tv-xz]{0,2}\.\s*$/u;

// Return parts of a text: white space and sentences, alternately; the first and the last are white
// space. Joined, they are the text.
export function partsOf(text, language) {
  const parts = [""];
  for (const line of text.split(/(?<=\n)/u)) {
    for (const segment of segmentsOf(line, language)) {
      const [, before, sentence, after] = segment.match(/^(\s*)(.*?)(\s*)$/su);
      parts[parts.length - 1] += before;
      if (sentence) parts.push(sentence, after);
    }
  }
  return parts;
}

function segmentsOf(line, language) {
  const segments = [];
  let isOpen = false;
  for (const part of split(line, language)) {
    if (isOpen) segments.push(segments.pop() + part);
    else segments.push(part);
    isOpen = ABBREVIATION.test(segments.at(-1));
  }
  return segments;
}

function split(line, language) {
  if (!Intl.Segmenter) return line.split(/(?<=[.!?…]["'”’»)]?\s+)|(?<=[。！？])/u);
  const segmenter = new Intl.Segmenter(language || undefined, { granularity: "sentence" });
  return [...segmenter.segment(line)].map(({ segment }) => segment);
}
