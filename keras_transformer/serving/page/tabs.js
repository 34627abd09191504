// The tabs of the page: translation and chat.

const TABS = ["translate", "chat"];
const $ = (id) => document.getElementById(id);

function open(name) {
  for (const one of TABS) {
    $(one).hidden = one !== name;
    $(`${one}-tab`).setAttribute("aria-selected", one === name);
    $(`${one}-tab`).tabIndex = one === name ? 0 : -1;
  }
}

// Show what the server can do: tabs if it translates and chats.
export function showTabs(translates, chats) {
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
