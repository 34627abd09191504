// The chat: messages to a language model, and its reply piece by piece.

import { askForChunks, Refused } from "./api.js";
import { copy } from "./copy.js";

const $ = (id) => document.getElementById(id);

// Models without a chat template continue the text of the messages.
export class ChatView {
  constructor(models) {
    this.models = new Map(models.map((model) => [model.id, model]));
    this.messages = []; // role and content of each
    this.running = null; // aborts the reply
    $("chat-model").replaceChildren(...models.map(({ id }) => new Option(id, id)));
    $("chat-new").addEventListener("click", () => this.begin());
    $("chat-stop").addEventListener("click", () => this.running?.abort());
    $("chat-text").addEventListener("input", () => this.show());
    $("chat-text").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      $("chat-form").requestSubmit();
    });
    $("chat").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.running?.abort();
    });
    $("chat-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send($("chat-text").value);
    });
  }

  begin() {
    this.running?.abort();
    this.messages = [];
    $("chat-messages").replaceChildren();
    this.say();
    $("chat-text").focus();
  }

  say(words = "", isError = false) {
    $("chat-state").textContent = words;
    $("chat-state").classList.toggle("error", isError);
  }

  show() {
    $("chat-send").hidden = this.running !== null;
    $("chat-stop").hidden = this.running === null;
    $("chat-send").disabled = !$("chat-text").value.trim();
  }

  // Add a message to the list, and return the element of its text.
  add(role, content) {
    const item = document.createElement("li");
    const text = document.createElement("div");
    item.className = role;
    text.dir = "auto";
    text.className = "text";
    text.textContent = content;
    item.append(text);
    $("chat-messages").append(item);
    return text;
  }

  async send(content) {
    if (!content.trim() || this.running) return;
    const { signal } = (this.running = new AbortController());
    const { messages } = this;
    messages.push({ role: "user", content });
    const question = this.add("user", content);
    $("chat-text").value = "";
    const reply = this.add("assistant", "");
    this.show();
    this.say();
    this.follow(true);
    try {
      for await (const piece of this.pieces(messages, signal)) {
        const follows = this.isAtEnd();
        reply.append(piece);
        this.say();
        this.follow(follows);
      }
    } catch (error) {
      if (!signal.aborted) this.say(inWords(error), true);
    }
    this.running = null;
    this.end(messages, question, reply);
  }

  // Yield the pieces of a reply.
  async *pieces(messages, signal) {
    const model = $("chat-model").value;
    const say = (words) => this.say(words);
    const isChat = this.models.get(model).chat;
    const prompt = messages.map(({ content }) => content).join("");
    const path = isChat ? "v1/chat/completions" : "v1/completions";
    const body = isChat ? { model, messages } : { model, prompt, max_tokens: 200 };
    for await (const { choices } of askForChunks(path, { body, signal, say })) {
      yield choices[0]?.delta?.content ?? choices[0]?.text ?? "";
    }
  }

  // Keep the reply, even if it is incomplete. If it is empty, remove the question and put its text
  // back into the field.
  end(messages, question, reply) {
    const content = reply.textContent;
    this.show();
    if (messages !== this.messages) return; // a new chat has begun
    if (content) {
      messages.push({ role: "assistant", content });
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", () => copy(reply, button));
      reply.parentElement.append(button);
    } else {
      if (!$("chat-text").value) $("chat-text").value = question.textContent;
      messages.pop();
      question.parentElement.remove();
      reply.parentElement.remove();
      if (!$("chat-state").textContent) this.say("There was no reply.");
      this.show();
    }
  }

  isAtEnd() {
    const list = $("chat-messages");
    return list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  }

  follow(follows) {
    if (follows) $("chat-messages").scrollTop = $("chat-messages").scrollHeight;
  }
}

function inWords(error) {
  if (!(error instanceof Refused)) return `Something went wrong: ${error.message}`;
  if (error.status === 401) return "This server needs an API key: it is missing or wrong.";
  return `There was no whole reply: ${error.message}`;
}
