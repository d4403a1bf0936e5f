// A page of rows or a circuit, drawn from the state of the widget. Values are set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";

function element(name, classes, text) {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

function table(columns, rows, seen) {
  const made = element("table");
  const head = made.createTHead().insertRow();
  for (const column of columns) head.append(element("th", column.number ? "number" : "", column.name));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    if (seen && !seen.has(JSON.stringify(row))) line.className = "new";
    row.forEach((value, place) => {
      const kinds = [columns[place].number && "number", value === null && "null"].filter(Boolean);
      line.append(element("td", kinds.join(" "), value === null ? "NULL" : value));
    });
  }
  return made;
}

// A note stands under its box: what the node holds, and what has come since the last look.
function annotate(svg, notes) {
  for (const note of svg.querySelectorAll(".note")) note.remove();
  for (const box of svg.querySelectorAll("[data-box]")) {
    const [text, busy] = notes[box.dataset.box] ?? ["", false];
    box.classList.toggle("busy", busy);
    if (!text) continue;
    const note = document.createElementNS(SVG, "text");
    note.setAttribute("class", "note");
    note.setAttribute("x", box.x.baseVal.value + box.width.baseVal.value / 2);
    note.setAttribute("y", box.y.baseVal.value + box.height.baseVal.value + 7);
    note.textContent = text;
    svg.append(note);
  }
}

function render({ model, el }) {
  const root = element("div", "everview-live");
  const caption = element("div", "caption");
  const scroll = element("div", "scroll");
  root.append(caption, scroll);
  el.append(root);
  let seen = null;
  let picture = "";

  function draw() {
    const problem = model.get("problem");
    caption.textContent = problem || model.get("caption");
    caption.classList.toggle("problem", problem !== "");
    if (model.get("picture")) {
      if (picture !== model.get("picture")) {
        picture = model.get("picture");
        scroll.innerHTML = picture; // of this package's own drawing, every name in it escaped
      }
      annotate(scroll.querySelector("svg"), model.get("notes"));
      return;
    }
    picture = "";
    const rows = model.get("rows");
    scroll.replaceChildren(table(model.get("columns"), rows, seen));
    seen = new Set(rows.map((row) => JSON.stringify(row)));
  }

  model.on("change:version", draw);
  draw();
  return () => model.off("change:version", draw);
}

export default { render };
