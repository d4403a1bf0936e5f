// A row in full, and why it is there: the rows and plan nodes behind it as a tree.
import { post } from "./api.js";
import { counted, h, linkTo, loading, problem, text } from "./dom.js";
import { openDrawer } from "./drawer.js";

let asked = 0;

export async function showRow(relation, columns, row) {
  const mine = (asked += 1);
  const fields = h("dl", { class: "facts" }, columns.map((column, at) => [
    h("dt", {}, column.name), h("dd", { class: row[at] === null ? "null" : "code" }, full(row[at]))]));
  if (relation.kind === "table") {
    openDrawer("Row", fields, h("p", { class: "note" }, "It is there because somebody put it into the table."));
    return;
  }
  const reasons = h("div", { class: "reasons" }, loading());
  openDrawer("Why is this row here?", fields, h("h3", {}, "Because of"), reasons);
  try {
    const given = Object.fromEntries(columns.map((column, at) => [column.name, row[at]]));
    const told = await post(`/v1/views/${encodeURIComponent(relation.name)}/why`, { row: given });
    if (mine === asked) reasons.replaceChildren(tree(told));
  } catch (error) {
    if (mine === asked) reasons.replaceChildren(problem(error.kind === "NoSuchRow" ? { message: "The row is not there any more.", hint: "The view has changed since it was shown." } : error));
  }
}

const full = (value) => (value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value, null, 1) : String(value).slice(0, 20_000));

function tree(told) {
  return h("ul", { class: "tree" }, told.because.length ? told.because.map((each) => branch(each, 0)) : branch(told, 0), rest(told));
}

function branch(told, depth) {
  const line = [
    told.table ? h("a", { class: "table", href: linkTo(told.table) }, told.table) : h("b", {}, told.node),
    told.times > 1 && h("span", { class: "note" }, ` × ${told.times}`),
    told.row && h("span", { class: "row" }, told.row.map((value, at) => [
      h("span", { class: "field" }, h("i", {}, told.columns[at]), " ", h("span", { class: value === null ? "null" : "value" }, text(value)))])),
    told.note && h("p", { class: "note" }, told.note),
    told.again && h("p", { class: "note" }, "explained above"),
    told.ways > 0 && h("p", { class: "note" }, `and ${counted(told.ways, "other way", "other ways")}`),
  ];
  if (!told.because.length && !told.more) return h("li", { class: told.table ? "leaf" : undefined }, line);
  return h("li", {}, h("details", { open: depth < 6 }, h("summary", {}, line),
    h("ul", {}, told.because.map((each) => branch(each, depth + 1)), rest(told))));
}

const rest = (told) => told.more > 0 && h("li", { class: "note" }, `… and ${counted(told.more, "more row", "more rows")}`);

