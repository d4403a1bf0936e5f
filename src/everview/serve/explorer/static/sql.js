// The SQL page: a box that completes words and shows where a mistake is, and the answer below it.
import { get, post } from "./api.js";
import { cell, count, counted, duration, empty, h, isNumber, problem } from "./dom.js";
import { highlighted, tokens, wordAt } from "./highlight.js";

const ROWS = 500;
const OFFERED = 12;
const [TEXT, PAST] = ["everview.sql", "everview.past"];

let words = { keywords: [], functions: [] };

export function showSql(main, state) {
  const life = new AbortController();
  const past = JSON.parse(sessionStorage.getItem(PAST) ?? "[]");
  let [wrong, running, offered, chosen, at] = [null, null, [], 0, past.length];

  const back = h("pre", { class: "back", "aria-hidden": "true" });
  const area = h("textarea", {
    spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "SQL", role: "combobox", "aria-autocomplete": "list",
    "aria-controls": "offers", "aria-expanded": "false", placeholder: "SELECT * FROM …",
    oninput: () => { wrong = null; paint(); offer(); }, onkeydown: keyOn, onscroll: follow, onclick: hide, onblur: () => setTimeout(hide, 150),
  });
  const offers = h("ul", { class: "offers", id: "offers", role: "listbox", hidden: true });
  const run = h("button", { class: "primary", onclick: () => start(""), title: "Run (Ctrl Enter)" }, "Run");
  const plan = h("button", { onclick: () => start("EXPLAIN "), title: "The plan of a query" }, "Explain");
  const info = h("span", { class: "info", role: "status" });
  const out = h("div", { class: "body" }, empty("Ask anything.", "A query is answered from the last epoch; what changes something is one tick."));
  area.value = sessionStorage.getItem(TEXT) ?? "";
  main.append(
    h("header", { class: "head" }, h("div", {}, h("h1", {}, "SQL"), h("p", { class: "sub" }, "In Spark’s dialect")), h("div", { class: "actions" }, info, plan, run)),
    h("div", { class: "editor" }, back, area, offers), out);

  function paint() {
    sessionStorage.setItem(TEXT, area.value);
    back.replaceChildren(...highlighted(area.value, wrong), "\n");
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 0.45 * innerHeight)}px`;
    follow();
  }

  function follow() {
    [back.scrollTop, back.scrollLeft] = [area.scrollTop, area.scrollLeft];
  }

  // -- running

  async function start(before) {
    const picked = area.value.slice(area.selectionStart, area.selectionEnd);
    const text = picked.trim() ? picked : area.value;
    const shift = picked.trim() ? area.selectionStart : 0;
    if (!text.trim()) return;
    running?.abort();
    const mine = (running = new AbortController());
    hide();
    [wrong, run.disabled] = [null, true];
    paint();
    info.textContent = "Running…";
    const began = performance.now();
    try {
      const answer = await post("/v1/query", { sql: before + text, limit: ROWS }, mine.signal);
      info.textContent = duration(performance.now() - began);
      show(answer);
      remember(text);
    } catch (error) {
      if (error.name === "AbortError") return;
      info.textContent = "";
      place(error, text, before, shift);
      out.replaceChildren(problem(error));
    } finally {
      run.disabled = false;
    }
  }

  function place(error, text, before, shift) {
    if (!error.position) return;
    const { line, column } = error.position;
    const lines = (before + text).split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1 - before.length;
    if (start < 0) return;
    wrong = wordAt(area.value, Math.min(area.value.length, start + shift));
    error.message = `Line ${line}, column ${line === 1 ? column - before.length : column}: ${error.message}`;
    paint();
    area.focus();
    area.setSelectionRange(wrong.start, wrong.start);
  }

  function show(answer) {
    if (!answer.columns) {
      const { result } = answer;
      if (typeof result === "string") out.replaceChildren(h("pre", { class: "code" }, result));
      else out.replaceChildren(empty(typeof result === "number" ? `${counted(result, "row")} changed, epoch ${count(answer.epoch)}.` : `Done, epoch ${count(answer.epoch)}.`));
      return;
    }
    const only = answer.columns.length === 1 && answer.rows.every(([value]) => typeof value === "string" && value.includes("\n"));
    if (only && answer.rows.length) {
      out.replaceChildren(...answer.rows.map(([value]) => h("pre", { class: "code" }, value)));
      return;
    }
    const head = h("thead", {}, h("tr", {}, answer.columns.map((column) => h("th", { scope: "col", class: isNumber(column.type) ? "number" : undefined },
      h("span", { class: "column" }, column.name), h("span", { class: "type" }, column.type)))));
    const table = h("table", { class: "rows" }, head, h("tbody", {}, answer.rows.map((row) => h("tr", {}, row.map((value, place) => cell(value, answer.columns[place].type))))));
    const cut = answer.total > answer.rows.length ? `, the first ${count(answer.rows.length)} are shown` : "";
    out.replaceChildren(h("div", { class: "scroll" }, table), h("footer", { class: "foot" }, h("span", { class: "info" }, `${counted(answer.total, "row")}${cut}`)));
  }

  function remember(text) {
    if (past.at(-1) !== text) past.push(text);
    past.splice(0, Math.max(0, past.length - 50));
    at = past.length;
    sessionStorage.setItem(PAST, JSON.stringify(past));
  }

  function recall(by) {
    const next = at + by;
    if (next < 0 || next > past.length) return;
    at = next;
    area.value = past[at] ?? "";
    paint();
  }

  // -- completion

  function offer() {
    const before = area.value.slice(0, area.selectionStart);
    const match = /([A-Za-z_][\w]*\.)?([A-Za-z_]\w*)?$/.exec(before);
    const [owner, word] = [match[1]?.slice(0, -1), match[2] ?? ""];
    const kind = tokens(before).at(-1)?.[0];
    if (kind === "text" || kind === "comment" || (!owner && word.length < 1)) return hide();
    const folded = word.toLowerCase();
    offered = candidates(owner).filter(([name]) => name.toLowerCase().startsWith(folded) && name.toLowerCase() !== folded).slice(0, OFFERED);
    if (!offered.length) return hide();
    chosen = 0;
    list(word);
  }

  function candidates(owner) {
    const relations = state.relations;
    if (owner) {
      const of = aliases()[owner.toLowerCase()] ?? owner.toLowerCase();
      const found = relations.find((each) => each.name.toLowerCase() === of);
      return found ? found.columns.map((column) => [column.name, column.type]) : relations.filter((each) => each.name.toLowerCase().startsWith(`${owner.toLowerCase()}.`)).map((each) => [each.name.slice(owner.length + 1), each.kind]);
    }
    const used = new Set(Object.values(aliases()));
    const near = relations.filter((each) => used.has(each.name.toLowerCase()));
    const columns = new Map((near.length ? near : relations.slice(0, 200)).flatMap((each) => each.columns.map((column) => [column.name, column.type])));
    return [...columns, ...relations.map((each) => [each.name, each.kind]), ...words.keywords.map((name) => [name, "keyword"]), ...words.functions.map((name) => [`${name}(`, "function"])];
  }

  // The relations that the text names, by the names it gives them.
  function aliases() {
    const found = {};
    for (const [, name, alias] of area.value.matchAll(/\b(?:from|join|update|into)\s+([\w.]+)(?:\s+(?:as\s+)?(\w+))?/gi)) {
      found[name.toLowerCase()] = name.toLowerCase();
      if (alias && !/^(on|where|join|left|right|full|inner|cross|group|order|limit|using|set|values|union|select)$/i.test(alias)) found[alias.toLowerCase()] = name.toLowerCase();
    }
    return found;
  }

  function list(word) {
    offers.replaceChildren(...offered.map(([name, kind], place) => h("li", { role: "option", id: `offer${place}`, "aria-selected": String(place === chosen),
      onmousedown: (event) => { event.preventDefault(); chosen = place; accept(); } },
    h("span", {}, h("b", {}, name.slice(0, word.length)), name.slice(word.length)), h("span", { class: "kind" }, kind))));
    const { left, top } = caret();
    offers.style.left = `${Math.max(0, Math.min(left, area.clientWidth - 280))}px`;
    offers.style.top = `${top}px`;
    offers.hidden = false;
    area.setAttribute("aria-expanded", "true");
    area.setAttribute("aria-activedescendant", `offer${chosen}`);
  }

  // Where the word at the cursor begins, by a mark in the text behind.
  function caret() {
    const start = area.selectionStart - (/\w*$/.exec(area.value.slice(0, area.selectionStart))?.[0].length ?? 0);
    const mark = h("span");
    back.replaceChildren(area.value.slice(0, start), mark, `${area.value.slice(start)}\n`);
    follow();
    const place = { left: mark.offsetLeft - area.scrollLeft - 10, top: mark.offsetTop - area.scrollTop + 24 };
    back.replaceChildren(...highlighted(area.value, wrong), "\n");
    follow();
    return place;
  }

  function accept() {
    const [name] = offered[chosen];
    const end = area.selectionStart;
    const start = end - (/\w*$/.exec(area.value.slice(0, end))?.[0].length ?? 0);
    const plain = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?\(?$/.test(name) || name.includes(" ") ? name : `\`${name.replaceAll("`", "``")}\``;
    area.setRangeText(plain + (/[(]$/.test(plain) ? "" : " "), start, end, "end");
    hide();
    paint();
    area.focus();
  }

  function hide() {
    offers.hidden = true;
    offered = [];
    area.setAttribute("aria-expanded", "false");
    area.removeAttribute("aria-activedescendant");
  }

  function keyOn(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start("");
    } else if (!offers.hidden && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : -1) + offered.length) % offered.length;
      list(/\w*$/.exec(area.value.slice(0, area.selectionStart))[0]);
    } else if (!offers.hidden && (event.key === "Tab" || event.key === "Enter")) {
      event.preventDefault();
      accept();
    } else if (event.key === "Escape" && !offers.hidden) {
      event.stopPropagation();
      hide();
    } else if (event.altKey && ["ArrowUp", "ArrowDown"].includes(event.key)) {
      event.preventDefault();
      recall(event.key === "ArrowUp" ? -1 : 1);
    }
  }

  paint();
  area.focus();
  if (!words.keywords.length) get("/v1/explorer/words", life.signal).then((told) => { words = told; }).catch(() => {});
  return { close: () => { life.abort(); running?.abort(); } };
}
