// @ts-check
// All texts: search, filters, and corrections of one or many labels at once.

import { act, get } from "./api.js";
import { announce, byId, colour, fill, grouped, h, percent } from "./dom.js";
import { app, named } from "./state.js";

const SHOW = { all: "All", labelled: "Labelled", unlabelled: "Not labelled", low: "Low confidence", flagged: "Flagged",
  noted: "With a note", skipped: "Skipped", changed: "Changed in the last round", differs: "Differs from noisy labels" };
const SORT = { row: "Order of the table", "least sure": "Least sure first", "most sure": "Surest first" };

const query = { search: "", class: "", show: "all", sort: "row", page: 0 };
/** @type {Set<number>} */
const selected = new Set();
let asked = 0;

/** @param {(row: number) => void} open */
export function drawList(open) {
  const view = byId("view-list");
  const classes = app.progress?.classes ?? [];
  const again = () => load(open, true);
  const search = h("input", { type: "search", id: "search", placeholder: `Search the ${app.progress?.unit}s`, value: query.search, "aria-label": `Search the ${app.progress?.unit}s`,
    oninput: debounced((/** @type {Event} */ event) => { query.search = value(event); again(); }) });
  const shows = Object.entries(SHOW).filter(([name]) => name !== "differs" || app.progress?.sources.length);
  fill(view,
    h("div", { class: "filters" }, search,
      select("Show", shows, query.show, (show) => { query.show = show; again(); }),
      select("Class", [["", "Every class"], ...classes.map((each) => [each.name, each.name])], query.class, (name) => { query.class = name; again(); }),
      select("Sort", Object.entries(SORT), query.sort, (sort) => { query.sort = sort; again(); })),
    h("div", { id: "bulk", class: "bulk" }), h("div", { id: "list-rows" }));
  load(open, false);
}

/** @param {(row: number) => void} open @param {boolean} fresh */
async function load(open, fresh) {
  if (fresh) { query.page = 0; selected.clear(); }
  const mine = ++asked; // an answer that a later question has overtaken is dropped
  await app.guarded(async () => {
    const found = await get("list", query);
    if (mine === asked) drawRows(found, open);
  });
}

/** @param {{count: number, page: number, pages: number, rows: import("./types.js").ListRow[]}} found @param {(row: number) => void} open */
function drawRows(found, open) {
  const page = (/** @type {number} */ step) => { query.page = found.page + step; load(open, false); };
  fill(byId("list-rows"),
    found.rows.length ? table(found.rows, open) : h("p", { class: "empty" }, "Nothing matches these filters."),
    h("nav", { class: "pages", "aria-label": "Pages" },
      h("button", { type: "button", class: "tool", disabled: found.page === 0, onclick: () => page(-1) }, "Previous"),
      h("span", { class: "small" }, `${grouped(found.count)} ${app.progress?.unit}s · page ${found.page + 1} of ${grouped(found.pages)}`),
      h("button", { type: "button", class: "tool", disabled: found.page + 1 >= found.pages, onclick: () => page(1) }, "Next")));
  drawBulk(found.rows, open);
}

/** @param {import("./types.js").ListRow[]} rows @param {(row: number) => void} open */
export function table(rows, open, selectable = true) {
  return h("ul", { class: "rows" }, ...rows.map((row) => h("li", { class: "row", "data-row": row.row },
    selectable ? h("input", { type: "checkbox", "aria-label": `Select ${named(row.row)}`, checked: selected.has(row.row),
      onchange: (/** @type {Event} */ event) => { tick(row.row, event); drawBulk(rows, open); } }) : null,
    h("button", { type: "button", class: "row-text", dir: "auto", onclick: () => open(row.row), title: "Open" },
      row.text || "(no text)"),
    h("div", { class: "row-side" }, tag(row), row.flag ? h("span", { class: "mini" }, "flagged") : null,
      row.note ? h("span", { class: "mini", title: row.note }, "note") : null,
      row.skipped ? h("span", { class: "mini" }, "skipped") : null,
      ...Object.entries(row.votes).filter(([, vote]) => vote !== (row.shown_label ?? row.shown_prediction))
        .map(([source, vote]) => h("span", { class: "mini differs" }, `${source}: ${vote}`)),
      corrector(row, open)))));
}

/** @param {import("./types.js").ListRow} row */
function tag(row) {
  const names = (app.progress?.classes ?? []).map((each) => each.name);
  const name = row.shown_label ?? row.shown_prediction;
  if (name === null) return h("span", { class: "tag cx" }, "no prediction");
  const kind = row.label ? "label" : `predicted ${percent(row.confidence)}`;
  return h("span", { class: `tag ${row.label ? "solid " : ""}${colour(names.indexOf(name))}` }, name, h("small", {}, kind));
}

/** A menu that corrects one label at once. @param {import("./types.js").ListRow} row @param {(row: number) => void} open */
function corrector(row, open) {
  if (app.progress?.unit === "sentence") return accepter(row, open);
  const names = (app.progress?.classes ?? []).map((each) => each.name);
  const options = [["", row.label ? "Change…" : "Label…"], ...names.map((name) => [name, name])];
  const menu = plainSelect(options, "", (name) => { if (name) relabel([row.row], name, open); });
  menu.setAttribute("aria-label", `Label of ${named(row.row)}`);
  menu.className = "corrector";
  return menu;
}

/** A button that labels a sentence as it is predicted. @param {import("./types.js").ListRow} row @param {(row: number) => void} open */
function accepter(row, open) {
  if (row.label !== null || row.predicted === null) return null;
  return h("button", { type: "button", class: "tool accept", "aria-label": `Accept the prediction of ${named(row.row)}`,
    onclick: () => accept([row.row], open) }, "Accept");
}

/** @param {number[]} rows @param {(row: number) => void} open */
async function accept(rows, open) {
  await perform({ do: "accept", rows }, `${rows.length} saved as predicted.`, open);
}

/** @param {import("./types.js").ListRow[]} rows @param {(row: number) => void} open */
function drawBulk(rows, open) {
  const bulk = document.getElementById("bulk");
  if (!bulk) return;
  const names = (app.progress?.classes ?? []).map((each) => each.name);
  const every = rows.length > 0 && rows.every((row) => selected.has(row.row));
  const all = h("label", { class: "all" }, h("input", { type: "checkbox", id: "select-page", checked: every,
    onchange: (/** @type {Event} */ event) => { for (const row of rows) tick(row.row, event); load(open, false); } }), "Select this page");
  if (!selected.size) return fill(bulk, all);
  const chosen = [...selected];
  fill(bulk, all, h("span", { class: "small" }, `${chosen.length} selected`),
    app.progress?.unit === "sentence" ? null : select("Label all as", [["", "Choose a class…"], ...names.map((name) => [name, name])], "", (name) => { if (name) relabel(chosen, name, open); }),
    h("button", { type: "button", class: "tool", id: "accept-all", disabled: !app.progress?.rounds && !app.progress?.initial, onclick: () => accept(chosen, open) }, "Accept predictions"),
    h("button", { type: "button", class: "tool", onclick: () => relabel(chosen, null, open) }, "Remove labels"),
    h("button", { type: "button", class: "tool", onclick: () => perform({ do: "flag", rows: chosen, on: true }, "Flagged.", open) }, "Flag"));
}

/** @param {number[]} rows @param {string|null} name @param {(row: number) => void} open */
async function relabel(rows, name, open) {
  await perform({ do: "label", rows, class: name }, `${rows.length} saved as ${name ?? "not labelled"}.`, open);
}

/** @param {Object<string, any>} action @param {string} done @param {(row: number) => void} open */
async function perform(action, done, open) {
  await app.saving(async () => app.update((await act(action)).progress));
  selected.clear();
  announce(done);
  byId("view-list").hidden ? document.dispatchEvent(new Event("corrected")) : await load(open, false);
}

/** @param {number} row @param {Event} event */
function tick(row, event) {
  if (/** @type {HTMLInputElement} */ (event.target).checked) selected.add(row);
  else selected.delete(row);
}

/** @param {string} name @param {string[][]} options @param {string} now @param {(value: string) => void} changed */
function select(name, options, now, changed) {
  return h("label", { class: "field" }, h("span", {}, name), plainSelect(options, now, changed));
}

/** @param {string[][]} options @param {string} now @param {(value: string) => void} changed */
function plainSelect(options, now, changed) {
  return h("select", { onchange: (/** @type {Event} */ event) => changed(value(event)) },
    ...options.map(([key, text]) => h("option", { value: key, selected: key === now }, text)));
}

/** @param {Event} event */
function value(event) {
  return /** @type {HTMLInputElement} */ (event.target).value;
}

/** @template {any[]} T @param {(...given: T) => void} run @returns {(...given: T) => void} */
function debounced(run, wait = 200) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => run(...given), wait); };
}
