// The translation page. Texts are inserted into the document as text only, never as markup.

import { ask, askForEvents, Refused, storedKey, storeKey } from "./api.js";
import { AttentionView } from "./attention.js";
import { ChatView } from "./chat.js";
import { copy } from "./copy.js";
import { marked } from "./differences.js";
import { takeFiles } from "./files.js";
import { LanguagePair, pairInAddress, withPair } from "./languages.js";
import { LiveTranslation, showGrowing } from "./live.js";
import { showTabs } from "./tabs.js";
import { hovers } from "./touch.js";

const PAUSE = 300; // milliseconds without typing, after which a text is translated
const MOST_ALTERNATIVES = 3;
const $ = (id) => document.getElementById(id);

let pair = null;
let settings = { charLimit: Infinity, alternatives: 0 };
let shown = null; // current result: q, source, target and translations, the shown one first
let running = null;
let timer = 0;
let isTargetChosen = false; // by the user; else a text in the target language changes the target
const view = new AttentionView($("attention"), (body, options) => ask("attention", { body, ...options }));

function sayIn(element) {
  return (words = "", isError = false) => {
    element.replaceChildren(words);
    element.classList.toggle("error", isError);
  };
}
const say = sayIn($("message")); // of the translation
const sayOfText = sayIn($("text-message"));

function inWords(error, thing) {
  if (!(error instanceof Refused)) return `Something went wrong: ${error.message}`;
  if (error.status === 413) return `${thing} is too large for this server: ${error.message}.`;
  if (error.status === 403) return "This server needs an API key: it is missing or wrong.";
  return `${thing} was not translated: ${error.message}`;
}

// Languages

function showPair() {
  const chosen = { source: pair.source, target: pair.target };
  $("text").lang = pair.source === "auto" ? (shown?.source ?? "") : pair.source;
  $("api").href = withPair("api.html", chosen);
  const why = pair.whyNotSwapped(shown?.source);
  $("swap").disabled = Boolean(why);
  $("swap").title = why || "Swap languages";
  $("swap-note").textContent = why;
  pair.detect(pair.source === "auto" ? shown?.detected : null);
  return chosen;
}

// Choose another target for a text in the language of the target, and return whether there is one.
function makeWay(language) {
  const other = pair.targets(language)[0];
  if (isTargetChosen || !other) return false;
  pair.choose("auto", other);
  return true;
}

function changeLanguages() {
  history.replaceState(null, "", withPair(location.pathname, showPair()));
  translate();
}

function swap() {
  const before = pair.back(shown?.source);
  isTargetChosen = true;
  if (shown && !$("live").checked) $("text").value = shown.translations[0];
  shown = null;
  pair.choose(pair.target, before);
  showCount();
  changeLanguages();
}

// Translation

const format = new Intl.NumberFormat("en").format;

function showCount() {
  const count = [...$("text").value].length;
  const isTooLong = count > settings.charLimit;
  $("count").textContent = `${format(count)} / ${format(settings.charLimit)}`;
  $("count").classList.toggle("error", isTooLong);
  $("clear").hidden = !count;
  sayOfText(isTooLong ? `Too long: at most ${format(settings.charLimit)} characters.` : "", true);
  return !isTooLong;
}

function show(found) {
  shown = found;
  const [best = "", ...others] = found?.translations ?? [];
  if ($("live").checked) showGrowing($("translation"), best);
  else $("translation").textContent = best;
  $("translation").lang = found?.target ?? "";
  showQuality(found?.quality);
  wait(false);
  const items = others.map((text, i) => {
    const [item, button] = ["li", "button"].map((name) => document.createElement(name));
    button.dir = "auto";
    button.append(...marked(text, best));
    button.addEventListener("click", () => choose(1 + i));
    item.append(button);
    return item;
  });
  $("alternatives").querySelector("ul").replaceChildren(...items);
  $("alternatives").lang = found?.target ?? "";
  $("alternatives").hidden = !items.length;
  $("copy").disabled = $("look").disabled = !best.trim();
  if (pair) showPair();
}

// Show the estimated quality of a translation, if the server has a calibration of the model.
function showQuality(quality) {
  $("quality").hidden = quality === undefined;
  $("quality").textContent = quality === undefined ? "" : `Quality ≈ ${Math.round(100 * quality)} %`;
}

// Mark the result as outdated until the next answer: it stays readable.
function wait(isWaiting) {
  $("result").classList.toggle("waiting", isWaiting);
  showProgress(isWaiting);
  $("alternatives").inert = isWaiting;
  if (isWaiting) $("copy").disabled = $("look").disabled = true;
}

function showProgress(isWaiting) {
  $("waiting").hidden = !isWaiting;
  $("translation").setAttribute("aria-busy", isWaiting);
}

function choose(rank) {
  const translations = [...shown.translations];
  [translations[0], translations[rank]] = [translations[rank], translations[0]];
  show({ ...shown, translations, quality: undefined }); // known only for the best translation
  $("alternatives").querySelectorAll("button")[rank - 1].focus();
}

async function translate() {
  clearTimeout(timer);
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const q = $("text").value;
  say();
  live.restart();
  if ($("live").checked) return continueLive(true);
  if (!showCount() || !q.trim()) return show(null);
  wait(true);
  const { source, target } = pair;
  const alternatives = Math.min(MOST_ALTERNATIVES, settings.alternatives);
  try {
    const body = { q, source, target, format: "text", alternatives };
    const answer = await ask("translate", { body, signal, say });
    if (signal.aborted) return;
    const detected = answer.detectedLanguage;
    if (detected?.language === target && makeWay(target)) return translate();
    const translations = [answer.translatedText, ...(answer.alternatives ?? [])];
    say();
    const { quality } = answer;
    show({ q, source: detected?.language ?? source, detected, target, translations, quality });
  } catch (error) {
    if (signal.aborted) return;
    show(null);
    say(inWords(error, "The text"), true);
  }
}

// Live translation

const live = new LiveTranslation({
  async ask(q, written, final, signal) {
    const { source, target } = pair;
    let text = "";
    const body = { q, written, final, source, target };
    for await (const event of askForEvents("live", { body, signal, say })) text += event.text;
    say();
    return text;
  },
  show(translation, q, isDone) {
    show({ q, source: pair.source, target: pair.target, translations: [translation] });
    showProgress(!isDone);
  },
  fail(error) {
    showProgress(false);
    say(inWords(error, "The text"), true);
  },
});

function continueLive(isPaused) {
  clearTimeout(timer);
  if (!showCount()) {
    live.restart();
    return show(null);
  }
  if (!$("text").value.trim()) say();
  live.update($("text").value, isPaused);
  timer = setTimeout(() => live.update($("text").value, true), PAUSE);
}

// Start or end live translation, which does not detect the language.
function switchLive() {
  const { checked } = $("live");
  if (checked && pair.source === "auto") {
    const usual = pair.sources.find(({ targets }) => targets.includes(pair.target)).code;
    pair.choose(shown?.detected?.language ?? usual, pair.target);
  }
  $("live-note").hidden = !checked;
  show(null);
  changeLanguages();
}

function edit({ inputType, isComposing }) {
  if (isComposing && $("live").checked) return;
  if ($("live").checked) return continueLive(inputType === "insertFromPaste");
  showCount();
  clearTimeout(timer);
  const isEmpty = !$("text").value.trim();
  wait(!isEmpty);
  timer = setTimeout(translate, isEmpty ? 0 : PAUSE);
}

function clear() {
  $("text").value = "";
  translate();
  $("text").focus();
}

// Show the attention. If the translation is not there yet, request it at once.
function look() {
  if (!$("look").disabled) view.open(shown, $("text").value.slice(0, $("text").selectionStart));
  else if (shown?.q !== $("text").value) translate();
}

function listen() {
  $("source").addEventListener("change", () => {
    shown = null;
    if (pair.source !== "auto" || !$("live").checked) return changeLanguages();
    $("live").checked = false;
    switchLive();
  });
  $("target").addEventListener("change", () => {
    isTargetChosen = true;
    changeLanguages();
  });
  $("live").addEventListener("change", switchLive);
  $("swap").addEventListener("click", swap);
  for (const name of ["input", "compositionend"]) $("text").addEventListener(name, edit);
  $("clear").addEventListener("click", clear);
  $("copy").addEventListener("click", () => copy($("translation"), $("copy")));
  $("look").addEventListener("click", look);
  document.addEventListener("keydown", (event) => {
    const isKey = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (isKey && !$("translate").hidden) look();
  });
  takeFiles(() => ({ source: pair.source, target: pair.target }), sayIn($("file-message")), inWords);
}

// Start

if (!hovers()) $("text").placeholder = "Type or paste text";
$("key").value = storedKey();
$("key").addEventListener("change", () => {
  storeKey($("key").value);
  if (pair) translate();
});

async function start() {
  const found = await Promise.all([
    ask("frontend/settings", { say }),
    ask("languages", { say }),
  ]);
  settings = found[0];
  say();
  $("key-field").hidden = !settings.keyRequired;
  new ChatView(settings.languageModels);
  showTabs(settings.language !== null, settings.languageModels.length > 0);
  if (!settings.language) return;
  $("file").accept = settings.supportedFilesFormat.join(",");
  pair = new LanguagePair($("source"), $("target"), found[1]);
  const { source, target } = pairInAddress();
  isTargetChosen = target !== null;
  const usual = pair.sources.length > 1 ? "auto" : settings.language.source.code;
  pair.choose(pair.targets(source).length ? source : usual, target ?? settings.language.target.code);
  listen();
  showPair();
  translate();
}
start().catch((error) => say(inWords(error, "The page"), true));
