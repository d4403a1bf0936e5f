// Requests to the server this page came from, with the token of its reader, who is asked for one when it is needed.
import { byId, h } from "./dom.js";

const KEY = "everview.token";

export class Refused extends Error {
  constructor(status, said) {
    super(said.message ?? "the server gave no answer");
    Object.assign(this, { status, kind: said.kind, hint: said.hint, position: said.position });
  }
}

function headers(more) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
}

let asking = null;

// One dialog, however many requests wait for the token.
function askForToken() {
  asking ??= new Promise((resolve) => {
    const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true, placeholder: "name.secret" });
    const form = h("form", { method: "dialog" },
      h("h2", {}, "A token is needed"),
      h("p", {}, "This server lets in whoever has a token. “everview token add” makes one."),
      h("label", { for: "token" }, "Token"), input,
      h("div", { class: "actions" }, h("button", { class: "primary" }, "Enter")));
    const dialog = byId("dialog");
    dialog.replaceChildren(form);
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEY, input.value.trim());
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { message: "The server cannot be reached.", hint: "It is tried again every few seconds." });
  }
  if (response.status === 401) {
    await askForToken();
    return request(path, options);
  }
  if (!response.ok) {
    const said = await response.json().catch(() => ({}));
    throw new Refused(response.status, said.error ?? {});
  }
  return response;
}

export const get = async (path, signal) => (await request(path, { signal })).json();

export async function post(path, body, signal) {
  const options = { method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return (await request(path, options)).json();
}

// Server-sent events over a plain request, which can carry a token; each is handed to a function as (kind, data).
export async function events(path, take, signal) {
  const response = await request(path, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const parts = waiting.split("\n\n");
    waiting = parts.pop();
    for (const part of parts) {
      const kind = /^event: (.*)$/m.exec(part)?.[1];
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (kind && data) take(kind, JSON.parse(data));
    }
  }
}
