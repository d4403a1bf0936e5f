// A table or a view: its rows a page at a time, its changes as they come, and its plan beside its text.
import { events, get } from "./api.js";
import { calm, cell, count, counted, empty, h, isNumber, linkTo, loading, problem } from "./dom.js";

import { highlighted } from "./highlight.js";
import { showRow } from "./why.js";

const PAGE = 100;
const CHANGES = 300;
const AGAIN = 3000; // until rows that could not be read are asked for again

export function showRelation(main, state, [name, tab = "rows"]) {
  const life = new AbortController();
  const relation = () => state.relations.find((each) => each.name === name);
  const known = relation();
  const kept = known && (known.kind === "table" || known.materialized);
  const tabs = [["rows", "Rows", kept], ["changes", "Changes", kept && known.kind === "view"], ["plan", known?.kind === "table" ? "Columns" : "Plan", true]];
  const at = tabs.find(([id, , there]) => id === tab && there)?.[0] ?? "plan";
  const said = h("p", { class: "sub" });
  const tools = h("div", { class: "actions" });
  const body = h("div", { class: "body" }, loading());
  main.append(
    h("header", { class: "head" },
      h("div", {}, h("h1", { class: "name" }, name), said), tools),
    h("nav", { class: "tabs", "aria-label": "Parts" }, tabs.filter(([, , there]) => there).map(([id, title]) =>
      h("a", { href: linkTo(name, id), "aria-current": id === at ? "page" : undefined }, title))),
    body);
  if (!known) {
    body.replaceChildren(empty("There is no table or view of this name.", "It may have been dropped."));
    return { close: () => life.abort(), relations: () => relation() && location.reload() };
  }
  const inCircuit = () => h("a", { class: "button", href: `#/circuit?focus=${encodeURIComponent(`${known.kind === "table" ? "t" : "v"}:${name}`)}` }, "In the circuit");
  const describe = () => {
    const now = relation();
    const kind = now?.kind === "table" ? "Table" : now?.materialized ? "View" : "Plain view";
    const rows = now?.rows === undefined ? "" : `, ${counted(now.rows, "row")}`;
    said.textContent = `${kind}${rows}${now?.key?.length ? `, key ${now.key.join(", ")}` : ""}`;
  };
  describe();
  const part = { rows: showRows, changes: showChanges, plan: showPlan }[at](body, tools, known, life, inCircuit);
  return { ...part, close: () => { life.abort(); part?.close?.(); }, relations: describe };
}

// -- rows

// Whether a tick may have changed a relation: of many relations, a tick names only those with the most rows.
function touches(tick, name) {
  const named = Object.keys(tick.in).length + Object.keys(tick.out).length;
  return name in tick.in || name in tick.out || tick.relations > named;
}

function showRows(body, tools, relation, life, inCircuit) {
  let [order, search, offset, total] = ["", "", 0, null];
  let [columns, rows] = [relation.columns, []];
  let asked = null;
  let seen = null;
  let chosen = -1;
  let due = 0; // when rows may be read again for what has changed
  let stale = false;
  const field = h("input", { type: "search", placeholder: "Search rows", "aria-label": "Search rows", autocomplete: "off", spellcheck: "false",
    oninput: calm(250, () => { search = field.value.trim(); first(); }) });
  tools.append(field, inCircuit());
  const table = h("table", { class: "rows" });
  const scroll = h("div", { class: "scroll" }, table);
  const info = h("span", { class: "info", role: "status" });
  const previous = h("button", { onclick: () => turn(-1), title: "Previous page (p)" }, "Previous");
  const next = h("button", { onclick: () => turn(1), title: "Next page (n)" }, "Next");
  const foot = h("footer", { class: "foot" }, info, h("span", { class: "group" }, previous, next));

  const path = (limit, from) => {
    const given = new URLSearchParams({ limit, offset: from });
    if (order) given.set("order", order);
    if (search) given.set("search", search);
    if (search && total === null) given.set("count", "true");
    return `/v1/views/${encodeURIComponent(relation.name)}?${given}`;
  };

  function first() {
    [offset, total, seen, chosen] = [0, null, null, -1];
    read();
  }

  async function read() {
    asked?.abort();
    const mine = (asked = new AbortController());
    life.signal.addEventListener("abort", () => mine.abort(), { once: true });
    const began = performance.now();
    scroll.classList.add("busy");
    try {
      const answer = await get(path(PAGE, offset), mine.signal);
      due = performance.now() + Math.max(900, 5 * (performance.now() - began)); // a slow view is read less often
      total = answer.total ?? total;
      [columns, rows] = [answer.columns, answer.rows];
      draw(answer.next !== undefined);
    } catch (error) {
      if (error.name === "AbortError") return;
      body.replaceChildren(problem(error));
      [stale, due] = [true, performance.now() + AGAIN];
    } finally {
      if (mine === asked) [asked] = [null, scroll.classList.remove("busy")];
    }
  }

  function draw(more) {
    const keys = rows.map((row) => JSON.stringify(row));
    const lines = rows.map((row, place) => h("tr", {
      class: [seen && !seen.has(keys[place]) ? "new" : "", place === chosen ? "chosen" : ""].join(" ").trim() || undefined,
      tabindex: place === Math.max(chosen, 0) ? "0" : "-1", "data-place": place,
    }, row.map((value, at) => cell(value, columns[at].type))));
    seen = new Set(keys);
    const held = document.activeElement?.closest?.("tr[data-place]")?.dataset.place;
    table.replaceChildren(
      h("thead", {}, h("tr", {}, columns.map(head))),
      h("tbody", { onclick: (event) => pick(event.target.closest("tr")), onkeydown: keyOn }, lines));
    if (held !== undefined) table.querySelector(`tr[data-place="${held}"]`)?.focus({ preventScroll: true });
    if (!rows.length) {
      body.replaceChildren(empty(search ? `No row has “${search}”.` : offset ? "There are no rows this far." : "No rows yet.",
        search ? "The search looks into every column." : "They are shown here as they come."));
      if (offset) body.append(foot);
    } else if (body.firstChild !== scroll) body.replaceChildren(scroll, foot);
    const last = offset + rows.length;
    info.textContent = rows.length ? `${count(offset + 1)}–${count(last)}${total === null ? "" : ` of ${count(total)}`}` : "";
    previous.disabled = offset === 0;
    next.disabled = !more;
  }

  function head(column) {
    const way = order === column.name ? "ascending" : order === `${column.name}.desc` ? "descending" : undefined;
    const sort = () => {
      order = way === undefined ? column.name : way === "ascending" ? `${column.name}.desc` : "";
      first();
    };
    return h("th", { class: isNumber(column.type) ? "number" : undefined, "aria-sort": way, scope: "col" },
      h("button", { onclick: sort, title: `Sort by ${column.name}` },
        h("span", { class: "column" }, h("span", { class: "name" }, column.name), h("span", { class: "way", "aria-hidden": "true" }, way === "ascending" ? " ↑" : way ? " ↓" : "")),
        h("span", { class: "type" }, column.type)));
  }

  function turn(by) {
    if (by < 0 ? previous.disabled : next.disabled) return;
    offset = Math.max(0, offset + by * PAGE);
    [seen, chosen] = [null, -1];
    scroll.scrollTop = 0;
    read();
  }

  function pick(line) {
    if (!line?.dataset.place || String(getSelection())) return;
    choose(Number(line.dataset.place));
    showRow(relation, columns, rows[chosen]);
  }

  function choose(place) {
    table.querySelector(".chosen")?.classList.remove("chosen");
    table.querySelector('tr[tabindex="0"]')?.setAttribute("tabindex", "-1");
    chosen = place;
    const line = table.querySelector(`tr[data-place="${place}"]`);
    line.classList.add("chosen");
    line.setAttribute("tabindex", "0");
    line.focus();
    line.scrollIntoView({ block: "nearest" });
  }

  function move(by) {
    if (rows.length) choose(Math.min(rows.length - 1, Math.max(0, chosen + by)));
  }

  function keyOn(event) {
    const act = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Enter: () => pick(event.target.closest("tr")) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  first();
  return {
    pulse(ticks, untold) {
      const changed = untold || ticks.some((tick) => touches(tick, relation.name));
      if ((changed || stale) && !asked && performance.now() > due) {
        stale = false;
        read();
      } else stale ||= changed;
    },
    key(event) {
      const act = { s: () => field.focus(), j: () => move(1), k: () => move(-1), n: () => turn(1), p: () => turn(-1) }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    },
  };
}

// -- changes

function showChanges(body, tools, relation, life, inCircuit) {
  let kept = [];
  let paused = false;
  const button = h("button", { onclick: () => { paused = !paused; button.textContent = paused ? "Go on" : "Pause"; draw(); } }, "Pause");
  tools.append(button, inCircuit());
  const lines = h("tbody");
  const table = h("table", { class: "rows changes" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Epoch"), h("th", { scope: "col", class: "number" }, "Weight"),
      relation.columns.map((column) => h("th", { scope: "col", class: isNumber(column.type) ? "number" : undefined }, column.name)))), lines);
  const scroll = h("div", { class: "scroll" }, table);
  const waiting = empty("Nothing has changed since this page was opened.", "Changes are shown here as they come.");
  body.replaceChildren(waiting);

  function draw() {
    if (paused || !kept.length) return;
    lines.replaceChildren(...kept.map(({ epoch, row, weight }) => h("tr", { class: weight > 0 ? "added" : "gone" },
      h("td", { class: "epoch" }, count(epoch)), h("td", { class: "number weight" }, weight > 0 ? `+${weight}` : `−${-weight}`),
      row.map((value, at) => cell(value, relation.columns[at].type)))));
    if (body.firstChild !== scroll) body.replaceChildren(scroll);
  }

  const later = calm(60, draw);

  function take(kind, data) {
    if (kind === "change") {
      const rows = data.rows.slice(0, CHANGES).map((each) => ({ epoch: data.epoch, row: each.slice(0, -1), weight: each.at(-1) }));
      kept = [...rows.reverse(), ...kept].slice(0, CHANGES);
      later();
    } else if (kind === "end") body.prepend(problem({ message: data.reason, hint: data.hint }));
  }

  async function follow() {
    let wait = 500;
    while (!life.signal.aborted) {
      try {
        await events(`/v1/views/${encodeURIComponent(relation.name)}/changes?snapshot=false`, take, life.signal);
      } catch (error) {
        if (error.name === "AbortError" || life.signal.aborted) return;
        if (error.status) {
          body.replaceChildren(problem(error));
          return;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(2 * wait, 8000);
    }
  }

  follow();
  return {};
}

// -- the plan

function showPlan(body, tools, relation, life, inCircuit) {
  tools.append(inCircuit());
  (async () => {
    try {
      const told = await get(`/v1/views/${encodeURIComponent(relation.name)}/plan`, life.signal);
      body.replaceChildren(...(told.kind === "table" ? [columnsOf(told)] : [plans(told), columnsOf(told)]));
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(problem(error));
    }
  })();
  return {};
}

function plans(told) {
  const plan = h("pre", { class: "code" });
  const show = (which) => {
    plan.replaceChildren(...tree(told[which] ?? "It is made by a function, and has no plan."));
    for (const each of choice.children) each.setAttribute("aria-pressed", String(each.dataset.plan === which));
  };
  const choice = h("span", { class: "group", role: "group", "aria-label": "Which plan" },
    h("button", { "data-plan": "optimized", onclick: () => show("optimized") }, "As it runs"),
    h("button", { "data-plan": "plan", onclick: () => show("plan") }, "As written"));
  show("optimized");
  return h("div", { class: "beside" },
    h("section", {}, h("header", {}, h("h2", {}, told.dialect === "spark" ? "SQL" : told.dialect)),
      h("pre", { class: "code" }, told.text ? highlighted(told.text.trim()) : "It has no text.")),
    h("section", {}, h("header", {}, h("h2", {}, "Plan"), told.plan && told.plan !== told.optimized && choice), plan));
}

// Each line of a plan with the name of its node set apart.
function tree(said) {
  return said.split("\n").flatMap((line, at) => {
    const [, room, name, more] = /^(\s*)(\S*)(.*)$/s.exec(line);
    return [at ? "\n" : "", room, h("b", {}, name), more];
  });
}

function columnsOf(told) {
  return h("section", { class: "columns" }, h("h2", {}, "Columns"),
    h("table", { class: "rows" }, h("thead", {}, h("tr", {}, ["Name", "Type", "NULL", told.key ? "Key" : ""].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, told.columns.map((column) => h("tr", {}, h("td", {}, column.name), h("td", {}, column.type),
        h("td", {}, column.nullable ? "allowed" : ""), h("td", {}, told.key?.includes(column.name) ? "key" : ""))))));
}

