// Words of a text that differ from those of another one.

const MOST = 4_000_000; // compared pairs of words; in longer texts all of the middle is marked

// Return the nodes of `text`: words that are not in `other` are in a <mark>. Where words of `other`
// are only missing, there is an empty <mark>.
export function marked(text, other) {
  const [own, others] = [split(text), split(other)];
  let start = 0;
  while (start < Math.min(own.length, others.length) && own[start] === others[start]) start++;
  let end = 0;
  const least = Math.min(own.length, others.length) - start;
  while (end < least && own.at(-1 - end) === others.at(-1 - end)) end++;
  const middle = own.slice(start, own.length - end);
  const changed = [...changes(middle, others.slice(start, others.length - end))];
  const nodes = [own.slice(0, start).join("")];
  for (const { words, isMarked } of changed) {
    if (!isMarked) {
      nodes.push(words.join(""));
      continue;
    }
    const [, before, inner, after] = words.join("").match(/^(\s*)(.*?)(\s*)$/su);
    const mark = document.createElement("mark");
    mark.textContent = inner;
    nodes.push(before, mark, after);
  }
  return [...nodes, own.slice(own.length - end).join("")].filter((node) => node !== "");
}

// Split a text into words and what is between them; if the browser can, also in languages without
// spaces.
function split(text) {
  if (!Intl.Segmenter) return text.match(/\s+|[\p{L}\p{N}\p{M}]+|[^\s\p{L}\p{N}\p{M}]/gu) ?? [];
  const segments = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text);
  return [...segments].map(({ segment }) => segment);
}

// Yield runs of `own`: those outside its longest common subsequence with `others` are marked.
function* changes(own, others) {
  if (!own.length || !others.length || own.length * others.length > MOST) {
    if (own.length || others.length) yield { words: own, isMarked: true };
    return;
  }
  const lengths = commonLengths(own, others);
  let [i, j] = [0, 0];
  while (i < own.length || j < others.length) {
    const [from, missing] = [i, j];
    while (i < own.length && j < others.length && own[i] === others[j]) [i, j] = [i + 1, j + 1];
    if (i > from) {
      yield { words: own.slice(from, i), isMarked: false };
      continue;
    }
    while (i < own.length || j < others.length) {
      if (i < own.length && own[i] === others[j]) break;
      if (j >= others.length || (i < own.length && lengths[i + 1][j] >= lengths[i][j + 1])) i++;
      else j++;
    }
    const words = own.slice(from, i);
    const isSpace = !words.join("").trim() && !others.slice(missing, j).join("").trim();
    yield { words, isMarked: !isSpace };
  }
}

// Return the length of the longest common subsequence of own[i:] and others[j:] for each i and j.
function commonLengths(own, others) {
  const lengths = Array.from({ length: own.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = own.length - 1; i >= 0; i--) {
    for (let j = others.length - 1; j >= 0; j--) {
      const skipped = Math.max(lengths[i + 1][j], lengths[i][j + 1]);
      lengths[i][j] = own[i] === others[j] ? 1 + lengths[i + 1][j + 1] : skipped;
    }
  }
  return lengths;
}
