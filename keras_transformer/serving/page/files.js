// Files to translate: chosen with a button or dropped on the page.

import { ask } from "./api.js";

const $ = (id) => document.getElementById(id);

// `pair()` returns the languages; `say` and `inWords` tell the state and the error of a file.
export function takeFiles(pair, say, inWords) {
  async function translate(file) {
    const body = new FormData();
    body.set("file", file);
    Object.entries(pair()).forEach(([name, code]) => body.set(name, code));
    say(`Translating ${file.name} …`);
    try {
      const { translatedFileUrl } = await ask("translate_file", { body, say });
      const link = document.createElement("a");
      // The path only: the server may use another host name for itself.
      link.href = new URL(translatedFileUrl, location).pathname;
      link.download = "";
      link.textContent = decodeURIComponent(link.href.split("/").pop());
      say("Translated: ");
      $("file-message").append(link);
    } catch (error) {
      say(inWords(error, file.name), true);
    }
  }

  $("file").addEventListener("change", () => {
    if ($("file").files.length) translate($("file").files[0]);
    $("file").value = "";
  });
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      if (!event.dataTransfer.types.includes("Files") || $("translate").hidden) return;
      event.preventDefault();
      $("drop").classList.toggle("dropping", name === "dragenter" || name === "dragover");
      if (name === "drop") translate(event.dataTransfer.files[0]);
    });
  }
}
