// The page. Texts are inserted into the document as text only, never as markup.

import { AttentionView } from "./attention.js";
import { Client, whyNot } from "./client.js";
import { copy } from "./copy.js";
import { marked } from "./differences.js";
import { LanguagePair, pairInAddress, withPair } from "./languages.js";
import { LiveTranslation, showGrowing } from "./live.js";
import { partsOf } from "./sentences.js";

const PAUSE = 300; // milliseconds without typing, after which a text is translated
const MOST_ALTERNATIVES = 3;
const $ = (id) => document.getElementById(id);

let client = null;
let pair = null; // of languages; null until the translator is loaded
let shown = null; // current result: q, source, target and translations, the shown one first
let running = null; // abort controller of a translation
let timer = 0;
const view = new AttentionView($("attention"), ({ q: text, ...fields }, { signal }) =>
  client.ask("attention", { text, ...fields }, { signal }),
);

function say(words = "", isError = false) {
  $("message").replaceChildren(words);
  $("message").classList.toggle("error", isError);
}

// Loading

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

async function load() {
  const controller = new AbortController();
  const cancel = () => controller.abort();
  const show = (isLoading) => {
    $("cancel").hidden = $("progress").hidden = !isLoading;
    $("load").hidden = isLoading;
  };
  let size = "";
  const progress = ({ done, total }) => {
    size = ` (${megabytes(total)} MB)`;
    $("progress").value = done / total;
    const isWhole = done === total;
    const words = isWhole ? "Starting the translator …" : "Loading the translator: ";
    const amount = isWhole ? "" : `${megabytes(done)} of ${megabytes(total)} MB`;
    $("loading-words").textContent = words + amount;
  };
  say();
  show(true);
  $("loading").hidden = false;
  $("loading-words").textContent = "Loading the translator …";
  $("progress").removeAttribute("value");
  $("cancel").addEventListener("click", cancel);
  try {
    ready(await client.ask("load", {}, { signal: controller.signal, progress }));
  } catch (error) {
    const isCancelled = controller.signal.aborted;
    $("loading-words").textContent = isCancelled ? "Loading was cancelled." : "";
    $("load").textContent = `${isCancelled ? "Load the translator" : "Try again"}${size}`;
    show(false);
    if (!isCancelled) say(error.message, true);
    $("load").focus();
  } finally {
    $("cancel").removeEventListener("click", cancel);
  }
}

function ready({ name, directions, isKept }) {
  $("loading").hidden = true;
  $("model").textContent = name;
  document.title = `Translate · ${name}`;
  pair = new LanguagePair($("source"), $("target"), entriesOf(directions), false);
  const { source, target } = pairInAddress();
  const isKnown = source !== null && pair.targets(source).length > 0;
  pair.choose(isKnown ? source : (directions[0].source ?? ""), target ?? directions[0].target ?? "");
  $("source").disabled = $("target").disabled = false;
  showPair();
  translate();
  keep(isKept);
}

// Say whether the page works without a network: its worker and all files are kept then.
async function keep(isKept) {
  if (!isKept || !navigator.serviceWorker) return;
  await navigator.serviceWorker.ready;
  $("offline").textContent = "Works offline from now on.";
}

// Return the languages with their names and targets, as the route `languages` of the server does.
function entriesOf(directions) {
  const codes = [...new Set(directions.flatMap(({ source, target }) => [source ?? "", target ?? ""]))];
  return codes.map((code) => {
    const own = directions.filter(({ source }) => (source ?? "") === code);
    return { code, name: nameOf(code), targets: own.map(({ target }) => target ?? "") };
  });
}

function nameOf(code) {
  if (!code) return "Text";
  try {
    return new Intl.DisplayNames("en", { type: "language" }).of(code.replaceAll("_", "-"));
  } catch {
    return code;
  }
}

// Languages

function showPair() {
  $("text").lang = pair.source;
  const why = pair.whyNotSwapped();
  $("swap").disabled = Boolean(why);
  $("swap").title = why || "Swap languages";
  $("swap-note").textContent = why;
}

function changeLanguages() {
  shown = null;
  showPair();
  history.replaceState(null, "", withPair(location.pathname, pair));
  translate();
}

function swap() {
  const { source, target } = pair;
  if (shown && !$("live").checked) $("text").value = shown.translations[0];
  pair.choose(target, source);
  changeLanguages();
}

// Translation

const format = new Intl.NumberFormat("en").format;

function showCount() {
  const count = $("text").value.length;
  $("count").textContent = `${format(count)} / ${format($("text").maxLength)}`;
  $("clear").hidden = !count;
}

function show(result) {
  shown = result;
  const [best = "", ...others] = result?.translations ?? [];
  if ($("live").checked) showGrowing($("translation"), best);
  else $("translation").textContent = best;
  $("translation").lang = $("alternatives").lang = result?.target ?? "";
  const items = others.map((text, i) => {
    const [item, button] = ["li", "button"].map((name) => document.createElement(name));
    button.dir = "auto";
    button.append(...marked(text, best));
    button.addEventListener("click", () => choose(1 + i));
    item.append(button);
    return item;
  });
  $("alternatives").querySelector("ul").replaceChildren(...items);
  $("alternatives").hidden = !items.length;
  wait(false);
  $("copy").disabled = $("look").disabled = !best.trim();
}

// Mark the result as outdated until the next one: it stays readable.
function wait(isWaiting) {
  $("result").classList.toggle("waiting", isWaiting);
  showProgress(isWaiting);
  $("alternatives").inert = isWaiting;
  if (isWaiting) $("copy").disabled = $("look").disabled = true;
}

function showProgress(isWaiting) {
  $("waiting").hidden = $("stop").hidden = !isWaiting;
  $("translation").setAttribute("aria-busy", isWaiting);
}

function choose(rank) {
  const translations = [...shown.translations];
  [translations[0], translations[rank]] = [translations[rank], translations[0]];
  show({ ...shown, translations });
  $("alternatives").querySelectorAll("button")[rank - 1].focus();
}

async function translate() {
  clearTimeout(timer);
  running?.abort();
  showCount();
  const q = $("text").value;
  if (!pair) return;
  say();
  live.restart();
  if ($("live").checked) return continueLive(true);
  if (!q.trim()) return show(null);
  running = new AbortController();
  const { signal } = running;
  wait(true);
  const { source, target } = pair;
  const parts = partsOf(q, source);
  const lists = [];
  try {
    for (let i = 1; i < parts.length; i += 2) {
      lists.push(await client.ask("translate", { text: parts[i], source, target }, { signal }));
      if (parts.length > 3) $("translation").textContent = joined(parts, lists, 0);
    }
    const texts = Array.from({ length: 1 + MOST_ALTERNATIVES }, (_, rank) => joined(parts, lists, rank));
    show({ q, source, target, translations: [...new Set(texts)] });
  } catch (error) {
    if (signal.aborted) return;
    show(null);
    say(error.message, true);
  }
}

// Put the hypotheses of a rank in the place of their sentences; the last one where there are fewer.
function joined(parts, lists, rank) {
  const texts = lists.map((list) => (list[rank] ?? list.at(-1)).text);
  return parts.slice(0, 2 * lists.length + 1).map((part, i) => (i % 2 ? texts[(i - 1) / 2] : part)).join("");
}

// Live translation

const live = new LiveTranslation({
  async ask(text, written, isWhole, signal) {
    const { source, target } = pair;
    const fields = { text, written, isWhole, source, target };
    const more = await client.ask("continue", fields, { signal });
    say();
    return more;
  },
  show(translation, q, isDone) {
    show({ q, source: pair.source, target: pair.target, translations: [translation] });
    showProgress(!isDone);
  },
  fail(error) {
    showProgress(false);
    say(error.message, true);
  },
});

function continueLive(isPaused) {
  clearTimeout(timer);
  showCount();
  if (!$("text").value.trim()) say();
  live.update($("text").value, isPaused);
  timer = setTimeout(() => live.update($("text").value, true), PAUSE);
}

function switchLive() {
  $("live-note").hidden = !$("live").checked;
  show(null);
  translate();
}

function edit({ inputType, isComposing }) {
  if (isComposing && $("live").checked) return;
  if (pair && $("live").checked) return continueLive(inputType === "insertFromPaste");
  showCount();
  clearTimeout(timer);
  if (!pair) return;
  const isEmpty = !$("text").value.trim();
  wait(!isEmpty);
  timer = setTimeout(translate, isEmpty ? 0 : PAUSE);
}

function clear() {
  $("text").value = "";
  translate();
  $("text").focus();
}

function stop() {
  clearTimeout(timer);
  running?.abort();
  live.restart();
  const hadFocus = document.activeElement === $("stop");
  show(null);
  say("Stopped.");
  if (hadFocus) $("text").focus();
}

function look() {
  if (!$("look").disabled) view.open(shown, $("text").value.slice(0, $("text").selectionStart));
}

function listen() {
  $("load").addEventListener("click", load);
  for (const name of ["source", "target"]) $(name).addEventListener("change", changeLanguages);
  $("swap").addEventListener("click", swap);
  for (const name of ["input", "compositionend"]) $("text").addEventListener(name, edit);
  $("live").addEventListener("change", switchLive);
  $("clear").addEventListener("click", clear);
  $("copy").addEventListener("click", () => copy($("translation"), $("copy")));
  $("look").addEventListener("click", look);
  $("stop").addEventListener("click", stop);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) look();
    if (event.key === "Escape" && !$("stop").hidden && !$("attention").open) stop();
  });
}

// Start

showCount();
const why = whyNot();
if (why) {
  $("loading").hidden = true;
  say(why, true);
} else {
  // Without the service worker, as on plain http, the page needs the network.
  navigator.serviceWorker?.register("service-worker.js").catch(() => {});
  client = new Client();
  listen();
  load();
}
