// The circuit: boxes from left to right, folded by table, view and recursion, each with its work as it happens.
import { get } from "./api.js";
import { count, counted, duration, empty, h, linkTo, loading, problem, s, short } from "./dom.js";
import { openDrawer } from "./drawer.js";

const LOOK = 1000;
const AROUND = 24;
const KEY = "everview.opened";

export function showCircuit(main, state, rest, query) {
  const opened = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
  let focus = query.get("focus") ?? "";
  if (focus) opened.add(focus);
  const life = new AbortController();
  const nodes = new Map(); // of boxes, by their names
  const rates = new Map();
  let picture = null;
  let selected = null;
  let zoom = Number(sessionStorage.getItem("everview.zoom")) || 1;
  let timer;

  const said = h("p", { class: "sub" });
  const canvas = h("div", { class: "canvas", tabindex: "-1" }, loading());
  const svg = s("svg", { role: "group", "aria-label": "Circuit" });
  main.append(
    h("header", { class: "head" },
      h("div", {}, h("h1", {}, "Circuit"), said),
      h("div", { class: "actions" },
        h("button", { onclick: foldAll, title: "Fold all (f)" }, "Fold all"),
        h("span", { class: "group", role: "group", "aria-label": "Zoom" },
          h("button", { onclick: () => scale(1 / 1.25), "aria-label": "Smaller", title: "Smaller (−)" }, "−"),
          h("button", { onclick: fit, title: "Fit (0)" }, "Fit"),
          h("button", { onclick: () => scale(1.25), "aria-label": "Larger", title: "Larger (+)" }, "+")))),
    canvas, legend());

  async function look(again = true) {
    clearTimeout(timer);
    try {
      const asked = new URLSearchParams([...opened].map((name) => ["open", name]));
      if (focus) asked.set("focus", focus);
      if (picture) asked.set("picture", picture.picture);
      const answer = await get(`/v1/explorer/circuit?${asked}`, life.signal);
      if (answer.boxes) draw(answer);
      work(answer.work);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!picture) canvas.replaceChildren(problem(error));
    }
    if (again && !life.signal.aborted) timer = setTimeout(() => (document.hidden ? (timer = setTimeout(look, LOOK)) : look()), LOOK);
  }

  function draw(answer) {
    const before = selected && place(selected);
    const first = picture === null;
    picture = answer;
    nodes.clear();
    const top = answer.boxes.filter((box) => box.kind === "table" || box.kind === "view");
    said.textContent = `${counted(top.length, "table or view", "tables and views")}, ${counted(answer.nodes, "node")}`;
    if (!answer.boxes.length) {
      canvas.replaceChildren(empty("Nothing flows yet.", "Define a table and a view on the SQL page, and their circuit is drawn here."));
      return;
    }
    const [width, height] = answer.size;
    svg.setAttribute("viewBox", `${-AROUND} ${-AROUND} ${width + 2 * AROUND} ${height + 2 * AROUND}`);
    const frames = answer.boxes.filter((box) => box.open);
    const leaves = answer.boxes.filter((box) => !box.open);
    svg.replaceChildren(
      s("g", { class: "frames" }, frames.map(box)),
      s("g", { class: "arrows" }, answer.arrows.map(arrow)),
      s("g", { class: "boxes" }, leaves.map(box)));
    if (canvas.firstChild !== svg) canvas.replaceChildren(svg);
    nodes.forEach(cutTitle);
    rove(selected && nodes.has(selected) ? selected : leaves[0]?.id ?? frames[0].id);
    if (first && zoom === 1) fitIfLarge();
    size();
    if (first && focus && nodes.has(focus)) scrollTo(focus);
    else if (first) canvas.scrollTop = centre(answer.boxes[0])[1] * zoom - canvas.clientHeight / 2;
    else if (before && nodes.has(selected)) keepAt(before);
  }

  function arrow(each) {
    const points = each.points;
    let path = `M${points[0]}`;
    for (let at = 1; at < points.length; at += 1) {
      const [[a, b], [c, d]] = [points[at - 1], points[at]];
      const middle = (a + c) / 2;
      path += ` C${middle} ${b} ${middle} ${d} ${c} ${d}`;
    }
    const [x, y] = points.at(-1);
    const sign = x >= points.at(-2)[0] ? 1 : -1;
    return s("g", { "data-from": each.from, "data-to": each.to, class: each.dashed ? "dashed" : undefined },
      s("path", { class: "line", d: path }),
      s("path", { class: "tip", d: `M${x} ${y} l${-6 * sign} -3.5 v7 z` }));
  }

  function box(each) {
    const [[x, y], [width, height]] = [each.at, each.size];
    const what = each.opens ? `${each.title}, ${counted(each.nodes, "node")}, ${each.open ? "opened" : "folded"}` : each.title;
    const made = s("g", {
      class: `box ${each.kind}${each.open ? " open" : ""}${each.id === selected ? " selected" : ""}`,
      transform: `translate(${x} ${y})`, tabindex: "-1", role: "button", "aria-label": what, "data-box": each.id,
      "aria-expanded": each.opens ? String(each.open) : undefined,
      onclick: (event) => { event.stopPropagation(); choose(each.id, true); },
      onkeydown: (event) => keyOn(event, each.id),
    },
    s("rect", { class: "body", width, height, rx: each.kind === "table" ? 2 : 7 }),
    !each.open && s("rect", { class: "heat", x: 11, y: height - 10, width: 0, height: 3, rx: 1.5 }),
    s("text", { class: "title", x: 11, y: 19 }, each.title),
    each.opens && s("text", { class: "fold", x: width - 11, y: 19 }, each.open ? "−" : "+"),
    !each.open && s("text", { class: "held", x: 11, y: 37 }),
    !each.open && s("text", { class: "rate", x: 11, y: 53 }),
    !each.open && s("circle", { class: "runs", cx: width - 15, cy: 33, r: 3.5 }, s("title")));
    nodes.set(each.id, { box: each, made });
    return made;
  }

  // The title of a box as far as there is room for it, which fonts decide.
  function cutTitle({ box: each, made }) {
    const room = each.size[0] - 11 - (each.opens ? 24 : 8);
    if (each.title.length * 10 < room) return;
    const [title, letters] = [made.querySelector(".title"), [...each.title.replace(/…$/, "")]];
    while (letters.length > 1 && title.getComputedTextLength() > room) {
      letters.pop();
      title.textContent = `${letters.join("")}…`;
    }
  }

  // -- work

  function work(told) {
    const now = performance.now();
    let all = 0;
    for (const [id, each] of Object.entries(told)) {
      const before = rates.get(id);
      const rate = { ...each, at: now, perSecond: 0, tickMs: before?.tickMs ?? 0, heat: 0 };
      if (before && each.steps >= before.steps && now > before.at) {
        const seconds = (now - before.at) / 1000;
        const [rows, steps, ms] = [each.rows - before.rows, each.steps - before.steps, each.ms - before.ms];
        rate.perSecond = Math.max(0, rows) / seconds;
        if (steps > 0) rate.tickMs = ms / steps;
        rate.heat = 0.5 * before.heat + 0.5 * Math.max(0, ms);
      }
      rates.set(id, rate);
      if (nodes.has(id)) all = Math.max(all, rate.heat);
    }
    for (const [id, { box: each, made }] of nodes) {
      const rate = told[id] && rates.get(id);
      if (!rate || each.open) continue;
      made.querySelector(".held").textContent = rate.held ? `${short(rate.held)} held` : each.opens ? counted(each.nodes, "node") : "no state";
      const moves = rate.perSecond > 0 ? `+${short(rate.perSecond)}/s` : rate.rows ? `${short(rate.rows)} changes` : "";
      made.querySelector(".rate").textContent = [moves, rate.perSecond > 0 && rate.tickMs ? duration(rate.tickMs) : ""].filter(Boolean).join(" · ");
      const share = all > 0 ? rate.heat / all : 0;
      const bar = made.querySelector(".heat");
      bar.setAttribute("width", share < 0.02 ? 0 : share * (each.size[0] - 22));
      made.classList.toggle("hot", share > 0.6);
      made.classList.toggle("moves", rate.perSecond > 0);
      const runs = made.querySelector(".runs");
      const kind = rate.python ? "python" : rate.compiled ? "compiled" : "";
      runs.setAttribute("class", `runs ${kind}`);
      runs.firstChild.textContent = rate.python ? `${counted(rate.python, "node")} in Python${rate.compiled ? `, ${count(rate.compiled)} compiled` : ""}` : kind;
    }
    if (selected && rates.has(selected)) detail();
  }

  // -- choosing

  function choose(id, toggles) {
    const known = nodes.get(id);
    if (!known) return;
    svg.querySelector(".selected")?.classList.remove("selected");
    selected = id;
    known.made.classList.add("selected");
    rove(id);
    mark();
    if (known.box.opens && toggles) {
      if (opened.has(id)) opened.delete(id);
      else opened.add(id);
      sessionStorage.setItem(KEY, JSON.stringify([...opened]));
      look();
    }
    inspect(known.box);
  }

  function mark() {
    for (const each of svg.querySelectorAll("[data-from]")) {
      each.classList.toggle("near", each.dataset.from === selected || each.dataset.to === selected);
    }
  }

  let detail = () => {};

  async function inspect(each) {
    const figures = h("dl", { class: "facts" });
    const more = h("dl", { class: "facts" });
    const links = each.relation && h("p", { class: "links" },
      h("a", { href: linkTo(each.relation) }, "Rows"),
      each.kind === "view" && h("a", { href: linkTo(each.relation, "plan") }, "Plan and SQL"));
    openDrawer(each.title, links, figures, more);
    detail = () => {
      const rate = rates.get(each.id);
      if (!rate) return;
      const facts = [["Rows held", count(rate.held)]];
      if (rate.steps) { // nodes of a recursion that is one compiled call have no counters of their own
        facts.push(["Changes put out", count(rate.rows)], ["Now", rate.perSecond ? `${short(rate.perSecond)} changes/s` : "quiet"],
          ["Time a tick", rate.tickMs ? duration(rate.tickMs) : "—"], ["Ticks", count(rate.steps)]);
      }
      if (each.opens) facts.push(["Nodes", `${count(each.nodes)}${rate.python ? `, ${count(rate.python)} in Python` : ""}`]);
      figures.replaceChildren(...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    };
    detail();
    if (each.opens || each.kind === "more") return;
    try {
      const told = await get(`/v1/explorer/nodes/${encodeURIComponent(each.id)}`, life.signal);
      const facts = [["Runs", told.how || "—"], ["Output", told.output], ["Node", told.text]].filter(([, value]) => value);
      more.replaceChildren(...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", { class: "code" }, value)]));
    } catch (error) {
      if (error.name !== "AbortError") more.replaceChildren(problem(error));
    }
  }

  // -- the keyboard: one box is in the tab order, arrows go to the next one in their direction

  function rove(id) {
    svg.querySelector('.box[tabindex="0"]')?.setAttribute("tabindex", "-1");
    nodes.get(id)?.made.setAttribute("tabindex", "0");
  }

  function keyOn(event, id) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(id, true);
      nodes.get(id)?.made.focus();
    }
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [x, y] = centre(nodes.get(id).box);
    let best = null;
    for (const { box: each } of nodes.values()) {
      const [dx, dy] = [centre(each)[0] - x, centre(each)[1] - y];
      const along = dx * way[0] + dy * way[1];
      const aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (along > 5 && (best === null || along + 2 * aside < best[0])) best = [along + 2 * aside, each.id];
    }
    if (!best) return;
    rove(best[1]);
    nodes.get(best[1]).made.focus();
  }

  const centre = ({ at, size: [width, height] }) => [at[0] + width / 2, at[1] + height / 2];

  // -- where things are

  function place(id) {
    const made = nodes.get(id)?.made;
    if (!made) return null;
    const [a, b] = [made.getBoundingClientRect(), canvas.getBoundingClientRect()];
    return [a.left - b.left, a.top - b.top];
  }

  function keepAt([x, y]) {
    const [now, top] = place(selected);
    canvas.scrollBy(now - x, top - y);
  }

  function scrollTo(id) {
    const made = nodes.get(id).made;
    made.scrollIntoView({ block: "center", inline: "center" });
    choose(id, false);
  }

  function size() {
    if (!picture) return;
    svg.setAttribute("width", (picture.size[0] + 2 * AROUND) * zoom);
    svg.setAttribute("height", (picture.size[1] + 2 * AROUND) * zoom);
  }

  function scale(by) {
    zoom = Math.min(2.5, Math.max(0.15, zoom * by));
    sessionStorage.setItem("everview.zoom", zoom);
    size();
  }

  const fitting = () => Math.min(canvas.clientWidth / (picture.size[0] + 2 * AROUND), canvas.clientHeight / (picture.size[1] + 2 * AROUND));

  function fit() {
    if (!picture) return;
    zoom = 1;
    scale(Math.min(1.25, fitting()));
  }

  function fitIfLarge() {
    if (fitting() < 1 && !focus) zoom = Math.max(0.6, fitting());
  }

  function foldAll() {
    opened.clear();
    focus = "";
    sessionStorage.setItem(KEY, "[]");
    look();
  }

  function legend() {
    const dot = (kind) => s("svg", { width: 9, height: 9, class: "dot" }, s("circle", { class: `runs ${kind}`, cx: 4.5, cy: 4.5, r: 3.5 }));
    return h("footer", { class: "legend" },
      h("span", {}, dot("compiled"), "compiled"), h("span", {}, dot("python"), "some in Python"),
      h("span", {}, h("i", { class: "swatch heat" }), "share of the time"),
      h("span", {}, h("i", { class: "swatch dash" }), "reads state"));
  }

  look();
  return {
    close: () => { life.abort(); clearTimeout(timer); },
    key(event) {
      const act = { "+": () => scale(1.25), "=": () => scale(1.25), "-": () => scale(1 / 1.25), 0: fit, f: foldAll }[event.key];
      if (act) act();
    },
  };
}
