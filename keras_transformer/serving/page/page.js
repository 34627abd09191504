// The translation page. Texts are inserted into the document as text only, never as markup.

import { ask, Refused, storedKey, storeKey } from "./api.js";
import { AttentionView } from "./attention.js";
import { ChatView } from "./chat.js";
import { copy } from "./copy.js";

const PAUSE = 300; // milliseconds without typing, after which a text is translated
const MOST_ALTERNATIVES = 3;
const $ = (id) => document.getElementById(id);

let languages = new Map(); // language code -> name and targets
let settings = { charLimit: Infinity, alternatives: 0 };
let shown = null; // current result: q, source, target and translations, the shown one first
let running = null;
let timer = 0;
const view = new AttentionView($("attention"));

function sayIn(element) {
  return (words = "", isError = false) => {
    element.replaceChildren(words);
    element.classList.toggle("error", isError);
  };
}
const say = sayIn($("message"));
const sayOfFile = sayIn($("file-message"));

function inWords(error, thing) {
  if (!(error instanceof Refused)) return `Something went wrong: ${error.message}`;
  if (error.status === 413) return `${thing} is too large for this server: ${error.message}.`;
  if (error.status === 403) return "This server needs an API key: it is missing or wrong.";
  return `${thing} was not translated: ${error.message}`;
}

// Languages

function fill(select, entries, chosen) {
  select.replaceChildren(...entries.map(([code, name]) => new Option(name, code)));
  const codes = entries.map(([code]) => code);
  select.value = codes.includes(chosen) ? chosen : codes[0];
}

function nameOf(code) {
  return languages.get(code)?.name ?? code;
}

function targetsOf(source) {
  if (source !== "auto") return languages.get(source).targets;
  return [...new Set([...languages.values()].flatMap((language) => language.targets))];
}

function showLanguages(source, target) {
  const sources = [...languages].filter(([, language]) => language.targets.length);
  const entries = sources.map(([code, language]) => [code, language.name]);
  fill($("source"), [["auto", "Detect language"], ...entries], source);
  const targets = targetsOf($("source").value).map((code) => [code, nameOf(code)]);
  fill($("target"), targets, target);
  showSwap();
}

function from() {
  return $("source").value === "auto" ? shown?.source : $("source").value;
}

function showSwap() {
  const possible = from() && languages.get($("target").value)?.targets.includes(from());
  $("swap").disabled = !possible;
  $("swap").title = possible ? "Swap languages" : "No model translates the other way";
  const detected = $("source").value === "auto" && shown?.detected;
  $("source").options[0].text = detected ? `Auto: ${nameOf(detected)}` : "Detect language";
}

$("source").addEventListener("change", () => {
  showLanguages($("source").value, $("target").value);
  translate();
});
$("target").addEventListener("change", () => {
  showSwap();
  translate();
});
$("swap").addEventListener("click", () => {
  const before = from();
  if (shown) $("text").value = shown.translations[0];
  showLanguages($("target").value, before);
  showCount();
  translate();
});

// Translation

const format = new Intl.NumberFormat("en").format;

function showCount() {
  const count = [...$("text").value].length;
  $("count").textContent = `${format(count)} / ${format(settings.charLimit)}`;
  $("count").classList.toggle("error", count > settings.charLimit);
  return count;
}

function show(found) {
  shown = found;
  const [best = "", ...others] = found?.translations ?? [];
  $("translation").textContent = best;
  $("translation").lang = found?.target ?? "";
  showQuality(found?.quality);
  $("result").classList.remove("stale");
  const buttons = others.map((text, i) => {
    const button = document.createElement("button");
    button.dir = "auto";
    button.textContent = text;
    button.addEventListener("click", () => choose(1 + i));
    return button;
  });
  const items = buttons.map((button) => document.createElement("li"));
  items.forEach((item, i) => item.append(buttons[i]));
  $("alternatives").querySelector("ul").replaceChildren(...items);
  $("alternatives").lang = found?.target ?? "";
  $("alternatives").hidden = !items.length;
  $("alternatives").inert = false;
  $("copy").disabled = $("look").disabled = !best.trim();
  showSwap();
}

// Show the estimated quality of a translation, if the server has a calibration of the model.
function showQuality(quality) {
  $("quality").hidden = quality === undefined;
  $("quality").textContent = quality === undefined ? "" : `Quality ≈ ${Math.round(100 * quality)} %`;
}

// Mark the result as outdated: the text has changed. It stays readable until the next answer.
function outdate() {
  $("result").classList.add("stale");
  $("alternatives").inert = $("copy").disabled = $("look").disabled = true;
}

function choose(rank) {
  const translations = [...shown.translations];
  [translations[0], translations[rank]] = [translations[rank], translations[0]];
  show({ ...shown, translations, quality: undefined }); // it is that of the best translation
  $("alternatives").querySelectorAll("button")[rank - 1].focus();
}

async function translate() {
  clearTimeout(timer);
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const q = $("text").value;
  say();
  if (showCount() > settings.charLimit) {
    show(null);
    say(`The text is too long: at most ${format(settings.charLimit)} characters.`, true);
    return;
  }
  if (!q.trim()) return show(null);
  outdate();
  const [source, target] = [$("source").value, $("target").value];
  const alternatives = Math.min(MOST_ALTERNATIVES, settings.alternatives);
  try {
    const body = { q, source, target, format: "text", alternatives };
    const answer = await ask("translate", { body, signal, say });
    if (signal.aborted) return;
    const detected = answer.detectedLanguage?.language;
    const translations = [answer.translatedText, ...(answer.alternatives ?? [])];
    say();
    const { quality } = answer;
    show({ q, source: detected ?? source, detected, target, translations, quality });
  } catch (error) {
    if (signal.aborted) return;
    show(null);
    say(inWords(error, "The text"), true);
  }
}

$("text").addEventListener("input", () => {
  showCount();
  outdate();
  clearTimeout(timer);
  timer = setTimeout(translate, $("text").value.trim() ? PAUSE : 0);
});

$("copy").addEventListener("click", () => copy($("translation"), $("copy")));

// Attention

function look() {
  if ($("look").disabled) return;
  const before = $("text").value.slice(0, $("text").selectionStart);
  view.open(shown, before);
}
$("look").addEventListener("click", look);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !$("translate").hidden) look();
});

// Files

async function translateFile(file) {
  const body = new FormData();
  body.set("file", file);
  body.set("source", $("source").value);
  body.set("target", $("target").value);
  sayOfFile(`Translating ${file.name} …`);
  try {
    const { translatedFileUrl } = await ask("translate_file", { body, say: sayOfFile });
    const link = document.createElement("a");
    // The path only: the server may use another host name for itself.
    link.href = new URL(translatedFileUrl, location).pathname;
    link.download = "";
    link.textContent = decodeURIComponent(link.href.split("/").pop());
    $("file-message").replaceChildren("Translated: ", link);
  } catch (error) {
    sayOfFile(inWords(error, file.name), true);
  }
}

$("file").addEventListener("change", () => {
  if ($("file").files.length) translateFile($("file").files[0]);
  $("file").value = "";
});
for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    if (!event.dataTransfer.types.includes("Files") || $("translate").hidden) return;
    event.preventDefault();
    $("drop").classList.toggle("dropping", name === "dragenter" || name === "dragover");
    if (name === "drop") translateFile(event.dataTransfer.files[0]);
  });
}

// Tabs

const TABS = ["translate", "chat"];

function open(name) {
  for (const one of TABS) {
    $(one).hidden = one !== name;
    $(`${one}-tab`).setAttribute("aria-selected", one === name);
    $(`${one}-tab`).tabIndex = one === name ? 0 : -1;
  }
}

function showTabs(translates, chats) {
  $("tabs").hidden = !(translates && chats);
  if (chats) document.title = translates ? "keras_transformer" : "Chat · keras_transformer";
  open(translates ? "translate" : "chat");
}

for (const [i, name] of TABS.entries()) {
  $(`${name}-tab`).addEventListener("click", () => open(name));
  $(`${name}-tab`).addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    open(TABS[1 - i]);
    $(`${TABS[1 - i]}-tab`).focus();
  });
}

// Start

$("key").value = storedKey();
$("key").addEventListener("change", () => {
  storeKey($("key").value);
  translate();
});

async function start() {
  const found = await Promise.all([
    ask("frontend/settings", { say }),
    ask("languages", { say }),
  ]);
  settings = found[0];
  languages = new Map(found[1].map((language) => [language.code, language]));
  $("key-field").hidden = !settings.keyRequired;
  new ChatView(settings.languageModels);
  showTabs(settings.language !== null, settings.languageModels.length > 0);
  if (!settings.language) return;
  $("file").accept = settings.supportedFilesFormat.join(",");
  const { source, target } = settings.language;
  const sources = found[1].filter((language) => language.targets.length);
  showLanguages(sources.length > 1 ? "auto" : source.code, target.code);
  translate();
}
start().catch((error) => say(inWords(error, "The page"), true));
