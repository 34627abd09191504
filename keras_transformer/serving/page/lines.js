// Attention as lines between words: Figures 3 to 5 of "Attention Is All You Need".

import { label } from "./pieces.js";

const LEAST = 0.02; // smaller weights have no line
const COLOURS = 8; // number of head colours in page.css
const SVG = "http://www.w3.org/2000/svg";

export function headClass(head) {
  return `head-${head % COLOURS}`;
}

// Return the lines of the `chosen` heads among all `heads`, from queries (left) to keys (right).
// `say` is called as by the heat map, with the mean weights of the chosen heads.
export function lines(heads, chosen, { rows, columns, rowTitle, columnTitle }, say) {
  const figure = document.createElement("div");
  figure.className = "lines";
  const svg = document.createElementNS(SVG, "svg");
  const height = Math.max(rows.length, columns.length);
  svg.setAttribute("viewBox", `0 0 100 ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.style.height = `calc(${height} * var(--row))`;
  const apart = Math.min(0.12, 0.6 / chosen.length);
  const drawn = chosen.flatMap((head, k) => {
    const shift = 0.5 + apart * (k - (chosen.length - 1) / 2); // draw the heads' lines side by side
    const one = (i, j, weight) => ({ i, j, line: line(i + shift, j + shift, weight, head) });
    return heads[head].flatMap((row, i) =>
      row.flatMap((weight, j) => (weight < LEAST ? [] : [one(i, j, weight)])),
    );
  });
  svg.append(...drawn.map((one) => one.line));

  const weight = (i, j) => chosen.reduce((sum, head) => sum + heads[head][i][j], 0) / chosen.length;
  const sides = [words(rows, rowTitle), words(columns, columnTitle)];
  figure.append(sides[0].list, svg, sides[1].list);

  function point(button) {
    const side = button ? sides.findIndex(({ list }) => list.contains(button)) : -1;
    const place = side < 0 ? -1 : sides[side].buttons.indexOf(button);
    const isOn = (i, j) => (side === 0 ? i : j) === place;
    figure.classList.toggle("some", side >= 0);
    drawn.forEach(({ i, j, line }) => line.classList.toggle("on", side >= 0 && isOn(i, j)));
    const weights = sides.map(({ buttons }, k) =>
      buttons.map((other, n) => {
        other.classList.toggle("on", other === button);
        const isPartner = side === 1 - k && chosen.length > 0;
        const value = isPartner ? (k ? weight(place, n) : weight(n, place)) : 0;
        other.style.setProperty("--weight", value);
        return value;
      }),
    );
    if (side < 0 || !chosen.length) say();
    else say({ side: ["rows", "columns"][side], place, weights: weights[1 - side] });
  }
  const focused = () => (figure.contains(document.activeElement) ? document.activeElement : null);

  figure.addEventListener("pointerover", (event) => {
    const button = event.target.closest("button");
    point(button ?? focused());
  });
  figure.addEventListener("pointerleave", () => point(focused()));
  figure.addEventListener("click", (event) => event.target.closest("button")?.focus());
  figure.addEventListener("focusin", (event) => {
    const side = sides.find(({ list }) => list.contains(event.target));
    side.buttons.forEach((button) => (button.tabIndex = button === event.target ? 0 : -1));
    point(event.target);
  });
  figure.addEventListener("focusout", () => point(null));
  figure.addEventListener("keydown", (event) => {
    const side = sides.findIndex(({ list }) => list.contains(event.target));
    const place = sides[side].buttons.indexOf(event.target);
    const { buttons } = sides[side];
    const other = sides[1 - side].buttons;
    const next = {
      ArrowUp: buttons[place - 1],
      ArrowDown: buttons[place + 1],
      ArrowLeft: side === 1 && other[Math.min(place, other.length - 1)],
      ArrowRight: side === 0 && other[Math.min(place, other.length - 1)],
      Home: buttons[0],
      End: buttons.at(-1),
    };
    if (!(event.key in next)) return;
    event.preventDefault();
    if (next[event.key]) next[event.key].focus();
  });
  return figure;
}

function line(y1, y2, weight, head) {
  const element = document.createElementNS(SVG, "line");
  const ends = { x1: 0, y1, x2: 100, y2 };
  Object.entries(ends).forEach(([name, value]) => element.setAttribute(name, value));
  element.setAttribute("stroke-width", 0.5 + 3 * weight);
  element.setAttribute("stroke-opacity", weight);
  element.setAttribute("class", headClass(head));
  return element;
}

function words(tokens, title) {
  const list = document.createElement("div");
  list.setAttribute("role", "toolbar");
  list.setAttribute("aria-orientation", "vertical");
  list.setAttribute("aria-label", title);
  const heading = document.createElement("p");
  heading.textContent = title;
  const buttons = tokens.map((token, i) => {
    const button = document.createElement("button");
    button.title = token.text;
    button.tabIndex = i ? -1 : 0;
    button.append(label(token));
    return button;
  });
  list.append(heading, ...buttons);
  return { list, buttons };
}
