// The page: what is shown for an address, the list of relations, the pulse of the server, and the keyboard.
import { get } from "./api.js";
import { byId, calm, count, h, linkTo, short } from "./dom.js";
import { showCircuit } from "./circuit.js";
import { showRelation } from "./relation.js";
import { showSql } from "./sql.js";
import { showTicks } from "./ticks.js";
import { closeDrawer } from "./drawer.js";

const PULSE = 1000;
const COUNT = 2500; // at least between two counts of all rows
const KEPT = 600;
const LISTED = 200;

// What every page may read; `shown` is the page at hand, which is told of every pulse.
export const state = { relations: [], ticks: [], epoch: 0, last: 0, definitions: -1, readOnly: false, connected: null };
let shown = null;
let countedAt = 0;

// -- pages

const PAGES = { circuit: showCircuit, ticks: showTicks, sql: showSql, relation: showRelation };

function address() {
  const [path, query = ""] = location.hash.slice(2).split("?");
  const [page, ...rest] = path.split("/").map(decodeURIComponent);
  return { page: PAGES[page] ? page : "circuit", rest, query: new URLSearchParams(query) };
}

function show() {
  const { page, rest, query } = address();
  shown?.close?.();
  closeDrawer();
  closeMenu();
  const main = byId("main");
  main.className = page;
  main.replaceChildren();
  shown = PAGES[page](main, state, rest, query) ?? null;
  document.title = page === "relation" ? `${rest[0]} · Everview` : `${page === "sql" ? "SQL" : page[0].toUpperCase() + page.slice(1)} · Everview`;
  mark();
}

function mark() {
  const { page, rest } = address();
  for (const link of document.querySelectorAll("[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const link of document.querySelectorAll("[data-relation]")) {
    if (page === "relation" && link.dataset.relation === rest[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// -- relations


function list() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const found = state.relations.filter((each) => each.name.toLowerCase().includes(wanted));
  const groups = [["Views", found.filter((each) => each.kind === "view")], ["Tables", found.filter((each) => each.kind === "table")]];
  const parts = groups.filter(([, each]) => each.length).map(([title, each]) => h("section", {},
    h("h2", {}, title, h("span", {}, count(each.length))),
    h("ul", {}, each.slice(0, LISTED).map((relation) => h("li", {},
      h("a", { href: linkTo(relation.name), "data-relation": relation.name, title: relation.name },
        h("span", { class: "name" }, relation.name),
        relation.rows !== undefined && h("span", { class: "figure" }, short(relation.rows)))))),
    each.length > LISTED && h("p", { class: "note" }, `${count(each.length - LISTED)} more: type to find them`)));
  byId("relations").replaceChildren(...(parts.length ? parts : [h("p", { class: "note" }, wanted ? "Nothing has that name." : "No tables yet.")]));
  mark();
}

async function relate() {
  const { relations } = await get("/v1/views?count=true");
  state.relations = relations;
  list();
  shown?.relations?.();
}

// -- the pulse

async function beat() {
  try {
    const said = await get(`/v1/explorer/pulse?after=${state.last}`);
    state.ticks.push(...said.ticks);
    state.ticks.splice(0, Math.max(0, state.ticks.length - KEPT));
    const moved = said.epoch !== state.epoch;
    Object.assign(state, { epoch: said.epoch, last: said.last, readOnly: said.read_only, connected: true });
    const stale = moved && state.relations.length <= LISTED && Date.now() - countedAt > COUNT;
    const untold = moved && !said.ticks.some((tick) => tick.epoch === said.epoch); // a follower's epochs come without ticks
    shown?.pulse?.(said.ticks, untold); // first: these ticks are told once, even if the list cannot be read now
    if (said.definitions !== state.definitions || stale) {
      countedAt = Date.now();
      await relate();
      state.definitions = said.definitions;
    }
  } catch (error) {
    state.connected = false;
    if (error.status === undefined) console.error(error);
  }
  for (const each of document.querySelectorAll(".pulse")) {
    each.classList.toggle("lost", !state.connected);
    const said = state.connected ? `Epoch ${count(state.epoch)}${state.readOnly ? " · follows" : ""}` : "Not connected";
    if (each.textContent !== said) each.textContent = said;
  }
}

async function live() {
  for (;;) {
    if (!document.hidden) await beat();
    await new Promise((resolve) => setTimeout(resolve, PULSE));
  }
}

// -- light and dark

const THEMES = ["system", "light", "dark"];

function theme(next) {
  const known = localStorage.getItem("everview.theme") ?? "system";
  const chosen = next ? THEMES[(THEMES.indexOf(known) + 1) % THEMES.length] : known;
  localStorage.setItem("everview.theme", chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  byId("theme").textContent = { system: "Auto", light: "Light", dark: "Dark" }[chosen];
}

// -- the keyboard

const KEYS = [
  ["/", "find a table or view"], ["g c", "the circuit"], ["g t", "the ticks"], ["g s", "SQL"],
  ["s", "search the rows shown"], ["j  k", "next and previous row, or page"], ["Enter", "why a row is there; open a box"],
  ["+  −  0", "zoom the circuit"], ["f", "fold the circuit"], ["t", "light or dark"], ["Ctrl Enter", "run the SQL"], ["Esc", "close what is open"],
];

function keys() {
  const dialog = byId("dialog");
  if (dialog.open) return;
  dialog.replaceChildren(h("form", { method: "dialog" },
    h("h2", {}, "Keyboard"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", {}, key.split(" ").filter(Boolean).map((each) => h("kbd", {}, each))), h("dd", {}, what)])),
    h("div", { class: "actions" }, h("button", { class: "primary" }, "Close"))));
  dialog.showModal();
}

let going = false;

function pressed(event) {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (event.key === "Escape") {
    if (document.activeElement === byId("filter")) byId("main").focus();
    closeDrawer();
    closeMenu();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going) {
    going = false;
    const page = { c: "circuit", t: "ticks", s: "sql" }[event.key];
    if (page) location.hash = `#/${page}`;
    return;
  }
  const act = { "/": find, "?": keys, t: () => theme(true), g: () => { going = true; setTimeout(() => { going = false; }, 1000); } }[event.key];
  if (act) {
    event.preventDefault();
    act();
  } else shown?.key?.(event);
}

function find() {
  openMenu();
  byId("filter").focus();
}

// -- the menu on a narrow page

function openMenu() {
  byId("side").classList.add("open");
  byId("menu").setAttribute("aria-expanded", "true");
}

function closeMenu() {
  byId("side").classList.remove("open");
  byId("menu").setAttribute("aria-expanded", "false");
}

// Enter in the filter goes to the first that is found.
function first(event) {
  const link = document.querySelector("[data-relation]");
  if (event.key === "Enter" && link) location.hash = link.getAttribute("href");
  if (event.key === "ArrowDown" && link) link.focus();
}

byId("filter").addEventListener("input", calm(80, list));
byId("filter").addEventListener("keydown", first);
byId("menu").addEventListener("click", () => (byId("side").classList.contains("open") ? closeMenu() : openMenu()));
byId("theme").addEventListener("click", () => theme(true));
byId("keys").addEventListener("click", keys);
document.addEventListener("keydown", pressed);
window.addEventListener("hashchange", show);
theme(false);
await beat();
show();
live();
