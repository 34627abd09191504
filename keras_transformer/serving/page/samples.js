// Requests to this server in curl, Python and JavaScript, for the languages that are chosen.

import { ask, askWithKey } from "./api.js";
import { copy } from "./copy.js";
import { LanguagePair, pairInAddress, withPair } from "./languages.js";

const TEXTS = { de: "Guten Morgen!", es: "¡Buenos días!", fr: "Bonjour à tous." };
const TEXT = "Good morning!"; // in other languages, and where the language is detected
const TYPE = "Content-Type: application/json";
const $ = (id) => document.getElementById(id);

let pair = null;
let models = new Map(); // name of a language model -> whether it has a chat template
let needsKey = false;

function headers() {
  return needsKey ? [TYPE, "Authorization: Bearer YOUR_KEY"] : [TYPE];
}

// The chosen request: its route, its body, and where its answer has the text.
function request() {
  const model = $("task").value;
  if (!model) {
    const { source, target } = pair;
    const body = { q: TEXTS[source] ?? TEXT, source, target };
    return { path: "translate", body, keys: ["translatedText"] };
  }
  if (models.get(model)) {
    const messages = [{ role: "user", content: TEXT }];
    const keys = ["choices", 0, "message", "content"];
    return { path: "v1/chat/completions", body: { model, messages }, keys };
  }
  return { path: "v1/completions", body: { model, prompt: TEXT }, keys: ["choices", 0, "text"] };
}

function fields(body, indent) {
  return Object.entries(body).map(([name, x]) => `${indent}"${name}": ${JSON.stringify(x)},\n`).join("");
}

function pairs(indent) {
  return headers().map((line) => `${indent}"${line.replace(": ", '": "')}",\n`).join("");
}

const SAMPLES = {
  curl: ({ url, body }) => {
    const lines = headers().map((line) => `    -H '${line}' \\\n`).join("");
    return `curl '${url}' \\\n${lines}    -d '${JSON.stringify(body)}'`;
  },
  python: ({ url, body, keys }) => `import json
import urllib.request

body = {
${fields(body, "    ")}}
headers = {
${pairs("    ")}}
request = urllib.request.Request("${url}", json.dumps(body).encode(), headers)
with urllib.request.urlopen(request) as response:
    answer = json.load(response)
print(answer${keys.map((key) => `[${JSON.stringify(key)}]`).join("")})`,
  javascript: ({ url, body, keys }) => `const response = await fetch("${url}", {
  method: "POST",
  headers: {
${pairs("    ")}  },
  body: JSON.stringify({
${fields(body, "    ")}  }),
});
const answer = await response.json();
console.log(answer${keys.map((key) => (Number.isInteger(key) ? `[${key}]` : `.${key}`)).join("")});`,
};

function show() {
  const { path, ...rest } = request();
  const url = new URL(path, new URL(".", location)).href;
  for (const [name, sample] of Object.entries(SAMPLES)) $(name).textContent = sample({ url, ...rest });
  $("answer").textContent = "";
  $("pair").hidden = Boolean($("task").value);
  if (!pair) return;
  const chosen = { source: pair.source, target: pair.target };
  history.replaceState(null, "", withPair(location.pathname, chosen));
  $("back").href = withPair("./", chosen);
}

function say(words = "", isError = false) {
  $("message").textContent = words;
  $("message").classList.toggle("error", isError);
}

async function send() {
  const { path, body } = request();
  $("send").disabled = true;
  try {
    $("answer").textContent = JSON.stringify(await askWithKey(path, { body, say }), null, 2);
    say();
  } catch (error) {
    $("answer").textContent = "";
    say(`The server refused the request: ${error.message}`, true);
  }
  $("send").disabled = false;
}

async function start() {
  const [settings, languages] = await Promise.all([
    ask("frontend/settings", { say }),
    ask("languages", { say }),
  ]);
  say();
  needsKey = settings.keyRequired;
  $("key-note").hidden = !needsKey;
  models = new Map(settings.languageModels.map(({ id, chat }) => [id, chat]));
  const tasks = [...models.keys()].map((name) => new Option(name, name));
  if (settings.language) tasks.unshift(new Option("Translation", ""));
  $("task").replaceChildren(...tasks);
  $("task-field").hidden = tasks.length < 2;
  if (!tasks.length) throw new Error("it has neither translators nor language models");
  if (settings.language) {
    pair = new LanguagePair($("source"), $("target"), languages);
    const { source, target } = pairInAddress();
    const usual = settings.language.source.code;
    pair.choose(pair.targets(source).length ? source : usual, target);
  }
  $("request").addEventListener("change", show);
  $("send").addEventListener("click", send);
  for (const button of document.querySelectorAll("section button:not(#send)")) {
    button.addEventListener("click", () => copy(button.parentElement.querySelector("pre"), button));
  }
  show();
}
start().catch((error) => say(`The requests cannot be shown: ${error.message}`, true));
