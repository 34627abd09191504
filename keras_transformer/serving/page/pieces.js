// Labels of tokens: a piece that continues the word before it has a hyphen, which CSS adds.

// Return an element with a token: { text, continues }.
export function label({ text, continues }, tag = "span") {
  const element = document.createElement(tag);
  if (tag !== "bdi") element.dir = "auto";
  element.textContent = text;
  element.classList.toggle("continues", continues);
  return element;
}

// Return the tokens of a side of /attention's answer: "source", "target" or "input".
export function tokensOf(found, side) {
  const own = found[`${side}_continues`] ?? [];
  // The decoder reads its begin token, then the target.
  const continues = side === "input" ? [false, ...(found.target_continues ?? [])] : own;
  return found[`${side}_tokens`].map((text, i) => ({ text, continues: Boolean(continues[i]) }));
}
