// A heat map of attention weights as a grid: one row per query, one column per key.

import { label } from "./pieces.js";

const CELL = { least: 18, most: 40 }; // side of a cell in CSS pixels

export function percent(weight) {
  return weight > 0 && weight < 0.005 ? "< 1 %" : `${Math.round(100 * weight)} %`;
}

// Return the map of `weights`. `say({ side, place, weights, here })` is called for the row, and the
// cell in it, that is pointed at or focused; without an argument if there is none.
export function heatMap(weights, { rows, columns, rowTitle, columnTitle }, say) {
  const table = document.createElement("table");
  table.className = "map";
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", `${rowTitle} in rows, ${columnTitle} in columns`);
  const head = table.createTHead().insertRow();
  head.append(corner(rowTitle, columnTitle));
  const headers = columns.map((token) => header(token, "col"));
  head.append(...headers);
  const body = table.createTBody();
  const cells = weights.map((row, i) => {
    const line = body.insertRow();
    line.append(header(rows[i], "row"));
    return row.map((weight, j) => {
      const cell = line.insertCell();
      cell.tabIndex = -1;
      cell.style.setProperty("--weight", weight);
      cell.setAttribute("aria-label", `${rows[i].text}, ${columns[j].text}: ${percent(weight)}`);
      return cell;
    });
  });
  let entry = cells[0][0]; // the one cell that the Tab key reaches
  entry.tabIndex = 0;

  function point(target) {
    const line = target?.closest("tbody tr");
    [...body.rows].forEach((row) => row.classList.toggle("on", row === line));
    const i = line ? line.sectionRowIndex : -1;
    const j = line ? target.closest("td")?.cellIndex - 1 : NaN;
    headers.forEach((header, k) => {
      header.style.setProperty("--weight", i < 0 ? 0 : weights[i][k]);
      header.classList.toggle("on", k === j);
    });
    if (i < 0) say();
    else say({ side: "rows", place: i, weights: weights[i], here: j >= 0 ? j : undefined });
  }
  const focused = () => (table.contains(document.activeElement) ? document.activeElement : null);

  table.addEventListener("pointerover", (event) => point(event.target));
  table.addEventListener("pointerleave", () => point(focused()));
  table.addEventListener("click", (event) => {
    const line = event.target.closest("tbody tr");
    if (line) (event.target.closest("td") ?? line.cells[1]).focus();
  });
  table.addEventListener("focusin", (event) => {
    entry.tabIndex = -1;
    entry = event.target;
    entry.tabIndex = 0;
    point(entry);
  });
  table.addEventListener("focusout", () => point(null));
  table.addEventListener("keydown", (event) => {
    const [i, j] = [entry.parentNode.sectionRowIndex, entry.cellIndex - 1];
    const last = [weights.length - 1, columns.length - 1];
    const places = {
      ArrowUp: [Math.max(i - 1, 0), j],
      ArrowDown: [Math.min(i + 1, last[0]), j],
      ArrowLeft: [i, Math.max(j - 1, 0)],
      ArrowRight: [i, Math.min(j + 1, last[1])],
      Home: event.ctrlKey ? [0, 0] : [i, 0],
      End: event.ctrlKey ? last : [i, last[1]],
    };
    const place = places[event.key];
    if (!place) return;
    event.preventDefault();
    cells[place[0]][place[1]].focus();
  });
  return table;
}

// Give the cells of a map the size with which it fills a box of `width` and `height`, within limits.
export function fit(table, width, height) {
  table.style.setProperty("--cell", `${CELL.least}px`);
  const [rows, columns] = [table.tBodies[0].rows.length, table.rows[0].cells.length - 1];
  const corner = table.rows[0].cells[0];
  const room = [(width - corner.offsetWidth) / columns, (height - corner.offsetHeight) / rows];
  const size = Math.min(Math.max(Math.floor(Math.min(...room)), CELL.least), CELL.most);
  table.style.setProperty("--cell", `${size}px`);
}

function header(token, scope) {
  const cell = document.createElement("th");
  cell.scope = scope;
  cell.title = token.text;
  cell.append(label(token));
  return cell;
}

function corner(rowTitle, columnTitle) {
  const cell = document.createElement("td");
  const titles = [`${columnTitle} →`, `${rowTitle} ↓`].map((title) => {
    const element = document.createElement("span");
    element.textContent = title;
    return element;
  });
  cell.append(...titles);
  return cell;
}
