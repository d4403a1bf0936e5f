// The drawer beside the page: one at a time, with a title and a way to close it.
import { byId, h } from "./dom.js";

let before = null;

export function openDrawer(title, ...content) {
  const drawer = byId("drawer");
  if (drawer.hidden) before = document.activeElement;
  drawer.replaceChildren(
    h("header", {}, h("h2", {}, title), h("button", { class: "quiet", onclick: closeDrawer, title: "Close (Esc)" }, "Close")),
    h("div", { class: "content" }, ...content));
  drawer.hidden = false;
  document.body.classList.add("with-drawer");
  return drawer.lastElementChild;
}

export function closeDrawer() {
  const drawer = byId("drawer");
  if (drawer.hidden) return;
  drawer.hidden = true;
  drawer.replaceChildren();
  document.body.classList.remove("with-drawer");
  before?.focus?.({ preventScroll: true });
}
