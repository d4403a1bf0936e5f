// Elements and figures. Whatever comes from data is set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(made, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

export function h(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

export function s(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

export const linkTo = (name, tab) => `#/relation/${encodeURIComponent(name)}${tab ? `/${tab}` : ""}`;

export const byId = (id) => document.getElementById(id);

const whole = new Intl.NumberFormat("en");
export const count = (value) => whole.format(value);
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

// A number in at most four characters and a letter.
export function short(value) {
  const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, letter] of steps) {
    if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1).replace(/\.0$/, "")}${letter}`;
  }
  return value >= 10 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, "");
}

export function duration(ms) {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms >= 100) return `${ms.toFixed(0)} ms`;
  if (ms >= 1) return `${ms.toFixed(1).replace(/\.0$/, "")} ms`;
  return ms > 0 ? `${Math.max(1, Math.round(ms * 1000))} µs` : "0";
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

export const isNumber = (type) => /^(TINYINT|SMALLINT|INTEGER|INT|BIGINT|FLOAT|DOUBLE|DECIMAL)/.test(type);

const LONG = 240;

// A value as people read it; long ones are cut where they are shown.
export function text(value) {
  if (value === null) return "NULL";
  const said = typeof value === "object" ? JSON.stringify(value) : String(value);
  return said.length > LONG ? `${said.slice(0, LONG)}…` : said;
}

export function cell(value, type) {
  const kind = value === null ? "null" : isNumber(type) ? "number" : "";
  return h("td", { class: kind || undefined }, text(value));
}

export function problem(error) {
  return h("div", { class: "problem", role: "alert" },
    h("p", {}, error.message),
    error.hint && h("p", { class: "hint" }, error.hint));
}

export const empty = (...said) => h("div", { class: "empty" }, ...said.map((each) => (each instanceof Node ? each : h("p", {}, each))));

export const loading = () => h("div", { class: "loading", role: "status" }, "Loading…");

// Calls a function when nothing has been asked of it for a while.
export function calm(wait, call) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
}
