// The timeline of ticks: how long each took, what it changed, and where it ran.
import { clock, count, counted, duration, empty, h, s, short } from "./dom.js";
import { openDrawer } from "./drawer.js";

const [WIDE, HIGH, LOW, LEFT] = [9, 140, 56, 64];
const LINES = 40;

export function showTicks(main, state) {
  const said = h("p", { class: "sub" });
  const summary = h("dl", { class: "summary" });
  const chart = h("div", { class: "chart" });
  const list = h("tbody");
  const table = h("div", { class: "scroll" }, h("table", { class: "rows ticks" },
    h("thead", {}, h("tr", {}, [["Epoch", "number"], ["At", ""], ["Took", "number"], ["Changes in", "number"], ["Changes out", "number"], ["Ran", ""], ["Most changed", ""]]
      .map(([title, kind]) => h("th", { scope: "col", class: kind || undefined }, title)))), list));
  main.append(h("header", { class: "head" }, h("div", {}, h("h1", {}, "Ticks"), said)), summary, chart, table);
  let chosen = null;

  function draw() {
    const ticks = state.ticks;
    said.textContent = ticks.length ? `The last ${counted(ticks.length, "tick")}` : "";
    table.hidden = summary.hidden = !ticks.length;
    if (!ticks.length) {
      chart.replaceChildren(empty("No tick since the server was started.", "Each transaction is one tick, and is shown here as it comes."));
      return;
    }
    summarize(ticks);
    const { paddingLeft, paddingRight } = getComputedStyle(chart);
    const room = chart.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const most = Math.max(10, Math.floor((room - LEFT - 4) / WIDE));
    chart.replaceChildren(bars(ticks.slice(-most), most));
    list.replaceChildren(...ticks.slice(-LINES).reverse().map(line));
  }

  function summarize(ticks) {
    const times = ticks.map((tick) => tick.ms).sort((a, b) => a - b);
    const span = Math.max(1, Date.now() / 1000 - ticks[0].at);
    const sum = (name) => ticks.reduce((all, tick) => all + tick[name], 0);
    const failures = ticks.filter((tick) => tick.failure).length;
    const facts = [["Median", duration(times[times.length >> 1])], ["95 of 100 within", duration(times[Math.floor(0.95 * (times.length - 1))])],
      ["Ticks a second", short(ticks.length / span)], ["Changes in a second", short(sum("rows_in") / span)], ["Changes out a second", short(sum("rows_out") / span)]];
    if (failures) facts.push(["Failed", count(failures)]);
    summary.replaceChildren(...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  }

  function bars(ticks, most) {
    const width = LEFT + most * WIDE + 4;
    const time = scale(ticks.map((tick) => tick.ms), HIGH);
    const rows = scale(ticks.map((tick) => tick.rows_in + tick.rows_out), LOW);
    const top = 8;
    const floor = top + HIGH;
    const made = s("svg", { width, height: floor + 6 + LOW + 22, role: "group", "aria-label": "Ticks, the last one to the right" });
    for (const value of time.marks) {
      const y = floor - time.of(value);
      made.append(s("line", { class: "grid", x1: LEFT, x2: width, y1: y, y2: y }), s("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, duration(value)));
    }
    made.append(s("line", { class: "axis", x1: LEFT, x2: width, y1: floor + 3, y2: floor + 3 }));
    made.append(s("text", { x: LEFT - 8, y: floor + 6 + LOW / 2, "text-anchor": "end" }, "changes"));
    const places = [...new Set(ticks.map((tick) => tick.placement))];
    ticks.forEach((tick, at) => {
      const x = LEFT + (most - ticks.length + at) * WIDE;
      const [high, low] = [Math.max(2, time.of(tick.ms)), tick.rows_in + tick.rows_out ? Math.max(2, rows.of(tick.rows_in + tick.rows_out)) : 0];
      made.append(s("g", { class: `tick place${places.indexOf(tick.placement) % 3}${tick.failure ? " failed" : ""}${tick.number === chosen ? " chosen" : ""}`, onclick: () => choose(tick) },
        s("title", {}, `Epoch ${count(tick.epoch)}: ${duration(tick.ms)}, ${counted(tick.rows_in, "change")} in, ${count(tick.rows_out)} out`),
        s("rect", { class: "area", x, y: 0, width: WIDE, height: floor + 6 + LOW }),
        s("rect", { class: "time", x: x + 1, y: floor - high, width: WIDE - 2, height: high, rx: 1 }),
        s("rect", { class: "changes", x: x + 1, y: floor + 6, width: WIDE - 2, height: low, rx: 1 })));
    });
    const [first, last] = [ticks[0], ticks.at(-1)];
    const bothFit = ticks.length * WIDE > 140;
    if (bothFit) made.append(s("text", { x: LEFT + (most - ticks.length) * WIDE, y: floor + 6 + LOW + 16 }, clock(first.at)));
    made.append(s("text", { x: width - 4, y: floor + 6 + LOW + 16, "text-anchor": "end" }, clock(last.at)));
    return h("div", {}, made, places.length > 1 && h("p", { class: "legend" }, places.map((place, at) => h("span", {}, h("i", { class: `swatch place${at % 3}` }), place))));
  }

  function line(tick) {
    const changed = Object.entries(tick.out).sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name, rows]) => `${name} ${short(rows)}`).join(", ");
    return h("tr", { class: [tick.failure ? "gone" : "", tick.number === chosen ? "chosen" : ""].join(" ").trim() || undefined, tabindex: "0",
      onclick: () => choose(tick), onkeydown: (event) => { if (event.key === "Enter") choose(tick); } },
    h("td", { class: "number" }, count(tick.epoch)), h("td", {}, clock(tick.at)), h("td", { class: "number" }, duration(tick.ms)),
    h("td", { class: "number" }, count(tick.rows_in)), h("td", { class: "number" }, count(tick.rows_out)), h("td", {}, tick.placement),
    h("td", { class: "wide" }, tick.failure ?? changed));
  }

  function choose(tick) {
    chosen = tick.number;
    const by = (title, rows) => Object.keys(rows).length > 0 && [h("h3", {}, title), h("dl", { class: "facts" },
      Object.entries(rows).sort((a, b) => b[1] - a[1]).map(([name, value]) => [h("dt", {}, name), h("dd", {}, count(value))]))];
    openDrawer(`Epoch ${count(tick.epoch)}`,
      tick.failure && h("div", { class: "problem" }, h("p", {}, tick.failure)),
      h("dl", { class: "facts" }, [["At", clock(tick.at)], ["Took", duration(tick.ms)],
        ...Object.entries(tick.steps).map(([name, ms]) => [`of it ${name}`, duration(ms)]), ["Ran", `${tick.placement}${tick.reason ? `: ${tick.reason}` : ""}`]].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      by("Changes in", tick.in), by("Changes out", tick.out));
    draw();
  }

  draw();
  const watch = new ResizeObserver(() => draw());
  watch.observe(main);
  return { pulse: (ticks) => ticks.length && draw(), close: () => watch.disconnect() };
}

// A logarithmic scale from a power of ten to a height, with its marks.
function scale(values, height) {
  const there = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...there, 1e9)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...there, 1e-9))));
  const marks = [];
  for (let power = low; power <= high; power += 1) marks.push(10 ** power);
  return { marks, of: (value) => (value > 0 ? (height * (Math.log10(value) - low)) / (high - low) : 0) };
}
