// SQL as text with its words told apart: keywords, texts, numbers and comments.
import { h } from "./dom.js";

const WORDS = new Set(`ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE CAST COMMIT COPY CREATE CROSS DELETE DESC DESCRIBE DISTINCT DROP ELSE
 END EXCEPT EXISTS EXPLAIN FALSE FILTER FROM FULL GROUP HAVING IF IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN KEY LATERAL LEFT LIKE
 LIMIT MATERIALIZED MERGE NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION PRIMARY RECURSIVE RIGHT ROLLBACK ROWS SELECT SET TABLE THEN
 TRUE UNION UNIQUE UPDATE USING VALUES VIEW WHEN WHERE WINDOW WITH`.split(/\s+/));
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^'\\]|\\.|'')*(?:'|$)|"(?:[^"\\]|\\.|"")*(?:"|$)|`[^`]*(?:`|$))|(\b\d[\w.]*)|([A-Za-z_]\w*)|([\s\S])/g;

// The parts of a text: [kind, text, place].
export function tokens(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = match[1] !== undefined ? "comment" : match[2] !== undefined ? "text" : match[3] !== undefined ? "figure"
      : match[4] !== undefined && WORDS.has(match[4].toUpperCase()) ? "word" : "";
    const last = found.at(-1);
    if (!kind && match[4] === undefined && last && !last[0] && last[3]) last[1] += match[0];
    else found.push([kind, match[0], match.index, match[4] === undefined]);
  }
  return found;
}

// The text as nodes; from ``wrong`` on, so many letters are underlined.
export function highlighted(text, wrong = null) {
  return tokens(text).flatMap(([kind, part, place]) => {
    if (wrong && place < wrong.end && place + part.length > wrong.start) {
      const [a, b] = [Math.max(0, wrong.start - place), Math.min(part.length, wrong.end - place)];
      return [span(kind, part.slice(0, a)), h("u", { class: "wrong" }, span(kind, part.slice(a, b))), span(kind, part.slice(b))];
    }
    return [span(kind, part)];
  });
}

const span = (kind, part) => (kind && part ? h("span", { class: `sql-${kind}` }, part) : part);

// The word at a place of a text, or one letter if there is none.
export function wordAt(text, start) {
  const word = /^[\w.]+|^"[^"]*"|^'[^']*'/.exec(text.slice(start))?.[0];
  return { start, end: Math.min(text.length, start + Math.max(1, word?.length ?? 1)) };
}
