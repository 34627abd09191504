// The beam search of translate.py (Wu et al. 2016), which keras-transformer exports with graphs.

export const OPTIONS = {
  beam_size: 4,
  length_penalty: 0.6,
  max_extra_length: 50,
  max_length: null,
  max_length_factor: null,
  scoring: "wu", // or "transformers" or "marian": length penalty and end as in that program
  early_stopping: false,
  forced_eos: true,
};
const NEVER = -1e9; // score of beams that are not used yet
const FORBIDDEN = 2 * NEVER; // score of a token that must not follow

// Return the maximum number of tokens of a translation.
export function limitOf(sourceLength, options, facts) {
  const { max_length: most, max_length_factor: factor, max_extra_length: extra } = options;
  const longest = most || (factor ? sourceLength * factor : sourceLength + extra);
  return Math.min(Math.trunc(longest), facts.max_length - 1);
}

// Return hypotheses { score, ids }, best first. `first` are the ids that the translation begins
// with; `pause()` is awaited before each step and may throw, to end the search.
export async function beamSearch(graphs, sourceIds, first, options, facts, pause) {
  const { beam_size: size, scoring } = options;
  const ends = [facts.eos_id].flat(); // one EOS token, or several
  const limit = limitOf(Math.max(sourceIds.length, first.length), options, facts);
  const memory = await graphs.encode(sourceIds, size);
  let past = graphs.empty(size);
  let tokens = Array(size).fill(facts.bos_id);
  let totals = tokens.map((_, i) => (i ? NEVER : 0)); // start with one beam
  let rows = tokens.map(() => []);
  let finished = [];
  for (let length = 1; length <= limit; length++) {
    await pause();
    const { logits, present } = await graphs.step(tokens, length - 1, memory, past);
    const vocabulary = logits.length / size;
    let forced = first.slice(length - 1, length);
    if (length === limit && options.forced_eos) forced = ends;
    const isSure = forced.length > 0 && scoring === "transformers"; // forced tokens: probability 1
    const sums = totals.map((total, i) =>
      isSure ? total : total - logOfSum(logits.subarray(i * vocabulary, (i + 1) * vocabulary)),
    );
    forbid(logits, vocabulary, facts.never_ids);
    if (isSure) logits.fill(0);
    if (forced.length) forbidOthers(logits, vocabulary, forced);
    const best = highest(logits, sums, (1 + ends.length) * size);
    if (scoring === "marian") {
      // Each finished hypothesis narrows the beam by one.
      for (const entry of best.slice(size - finished.length)) entry.score = NEVER;
    }
    const penalty = (scoring === "wu" ? (5 + length) / 6 : length) ** options.length_penalty;
    for (const entry of best) {
      entry.beam = Math.floor(entry.at / vocabulary);
      entry.token = entry.at % vocabulary;
      entry.isEnd = ends.includes(entry.token);
    }
    for (const { beam, token, isEnd, score } of best.slice(0, size)) {
      if ((isEnd || length === limit) && score > NEVER / 2) {
        finished.push({ score: score / penalty, ids: isEnd ? rows[beam] : [...rows[beam], token] });
      }
    }
    finished = finished.sort((x, y) => y.score - x.score).slice(0, size);
    const open = best.filter(({ isEnd }) => !isEnd).slice(0, size);
    if (length === limit || open.length < size) break;
    totals = open.map(({ score }) => score);
    const decisive = finished.at(scoring === "transformers" ? -1 : 0)?.score ?? NEVER;
    const endsHere = options.early_stopping || scoring === "marian";
    if (finished.length === size && (endsHere || decisive >= totals[0] / penalty)) break;
    rows = open.map(({ beam, token }) => [...rows[beam], token]);
    tokens = open.map(({ token }) => token);
    past = graphs.chosen(present, open.map(({ beam }) => beam));
  }
  return finished;
}

// Forbid tokens in each row of logits.
function forbid(logits, vocabulary, ids) {
  for (let start = 0; start < logits.length; start += vocabulary) {
    for (const id of ids) logits[start + id] = -Infinity;
  }
}

// Forbid all tokens but some in each row of logits.
function forbidOthers(logits, vocabulary, ids) {
  for (let start = 0; start < logits.length; start += vocabulary) {
    const kept = ids.map((id) => logits[start + id]);
    logits.fill(-Infinity, start, start + vocabulary);
    ids.forEach((id, i) => (logits[start + id] = kept[i]));
  }
}

function logOfSum(row) {
  let most = -Infinity;
  for (const x of row) if (x > most) most = x;
  let sum = 0;
  for (const x of row) sum += Math.exp(x - most);
  return most + Math.log(sum);
}

// Return the `count` highest entries { at, score } of all rows, where each row adds its sum.
function highest(logits, sums, count) {
  const vocabulary = logits.length / sums.length;
  const best = [];
  for (let at = 0; at < logits.length; at++) {
    const logit = logits[at];
    const score = logit === -Infinity ? FORBIDDEN : logit + sums[Math.floor(at / vocabulary)];
    if (best.length === count && score <= best[count - 1].score) continue;
    let place = best.length;
    while (place > 0 && best[place - 1].score < score) place--;
    best.splice(place, 0, { at, score });
    best.length = Math.min(best.length, count);
  }
  return best;
}
