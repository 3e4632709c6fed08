// @ts-check
// The view that shows one text at a time.

import { act, get, nextQuestion } from "./api.js";
import { addClass, editNote, showGuideline } from "./dialogs.js";
import { announce, byId, colour, fill, h, percent } from "./dom.js";
import * as sentence from "./sentence.js";
import { app, named } from "./state.js";

/** @type {import("./types.js").Question|null} */
let question = null;
let asked = false; // whether the server has answered at all
let busy = false;
let opened = 0; // counts what the person opens: an answer that comes later must not take its place

/** Load the text to label. */
export async function start() {
  const before = opened;
  await app.guarded(async () => {
    const next = await nextQuestion();
    if (opened === before) show(next);
  });
}

/** Show a text of the person's choice, such as one from the list. @param {number} row */
export async function open(row) {
  const mine = ++opened;
  await app.guarded(async () => {
    const chosen = await get("text", { row });
    if (opened !== mine) return;
    opened += 1;
    show(chosen);
  });
}

/** Draw the text again, with what the model thinks now. The text that is read does not change. */
export async function refresh() {
  if (busy || !question) return start();
  const now = await get("text", { row: question.row });
  if (question && now.row === question.row) {
    question = { ...now, reason: question.reason, audit: question.audit };
    draw();
  }
}

/** Give the text, or the selected words, this class. @param {string} name */
export async function choose(name) {
  if (sentence.isSentences()) return markWords(name);
  if (question) await send({ do: "label", row: question.row, class: name }, `Saved as ${name}.`);
}

export async function skip() {
  if (question) await send({ do: "skip", row: question.row }, "Skipped.");
}

export async function undo() {
  if (app.progress?.can_undo) await send({ do: "undo" }, "Undone.");
}

export async function flag() {
  if (!question) return;
  const on = !question.flag;
  const row = question.row;
  await app.saving(async () => app.update((await act({ do: "flag", rows: [row], on })).progress));
  if (question?.row === row) question.flag = on;
  announce(on ? "Flagged." : "Flag removed.");
  draw();
}

export async function note() {
  if (!question) return;
  const current = question;
  const text = await editNote(current.note);
  if (text === null) return;
  await app.saving(async () => app.update((await act({ do: "note", row: current.row, text })).progress));
  current.note = text.trim();
  draw();
}

export async function add() {
  const made = await addClass();
  if (!made) return;
  await app.saving(async () => app.update((await act({ do: "add", ...made })).progress));
  draw();
}

export function guideline() {
  if (app.progress) showGuideline(app.progress.classes, focusedClass());
}

export function toggleGuess() {
  app.setHidden(!app.hidesGuess);
  draw();
}

/** Move between the classes. @param {number} step */
export function move(step) {
  const buttons = classButtons();
  if (!buttons.length) return;
  const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  const from = at >= 0 ? at : step > 0 ? -1 : 0;
  buttons[(from + step + buttons.length) % buttons.length].focus();
}

/** Label with the class that is focused, else as the model guesses. */
export async function accept() {
  if (sentence.isSentences()) return saveEntities();
  const name = focusedClass() ?? (app.hidesGuess ? null : question?.guess);
  if (name) await choose(name);
}

/** Give the selected words a type; the keys go on in the sentence. @param {string} name */
function markWords(name) {
  if (sentence.mark(name)) draw();
  document.getElementById("text")?.focus({ preventScroll: true });
}

/** Save the entities of the sentence as they are marked. */
async function saveEntities() {
  if (question) await send({ do: "label", row: question.row, spans: sentence.entities() }, "Saved.");
}

/** Take the type of the selected words away. */
export function unmark() {
  if (sentence.unmark()) draw();
}

/** @param {Object<string, any>} action @param {string} done */
async function send(action, done) {
  if (busy) return; // a second key before the first label is on disk would label a text that nobody has read
  busy = true;
  try {
    await app.saving(async () => {
      const answered = await act(action, true);
      app.update(answered.progress);
      show(answered.question ?? null);
      announce(`${done} ${answered.question ? `Next: ${answered.question.text.slice(0, 200)}` : "None is left."}`);
    });
  } finally {
    busy = false;
  }
}

/** @param {import("./types.js").Question|null} next */
function show(next) {
  question = next;
  asked = true;
  draw();
  const text = document.getElementById("text");
  if (text) text.scrollTop = 0;
  const head = /** @type {HTMLElement} */ (document.querySelector(".top"));
  if (byId("work").getBoundingClientRect().top < head.offsetHeight) window.scrollTo({ top: 0 }); // the text is hidden
}

export function draw() {
  const focused = focusedClass();
  const reading = document.activeElement?.id === "text";
  fill(byId("work"), ...(question ? card(question) : [empty()]));
  if (reading) document.getElementById("text")?.focus({ preventScroll: true });
  if (focused) classButtons().find((button) => button.dataset.name === focused)?.focus();
}

/** @param {import("./types.js").Question} q @returns {HTMLElement[]} */
function card(q) {
  const classes = app.progress?.classes ?? [];
  const many = sentence.isSentences();
  const position = h("p", { class: "where" }, named(q.row));
  const labelled = many ? "Labelled. Change the entities and save to correct it." : `Labelled ${q.label}. Choose another class to correct it.`;
  const chosen = q.label ? labelled : q.reason;
  const why = h("p", { class: q.audit ? "why audit" : "why" }, chosen);
  const text = many ? sentence.drawWords(q) : h(
    "div",
    { id: "text", class: looksLikeCode(q.text) ? "text code" : "text", dir: "auto", tabindex: 0, role: "article",
      "aria-label": `Text ${q.row + 1}` },
    q.text,
  );
  const votes = Object.entries(q.votes).map(([source, vote]) => h("span", { class: "vote" }, `${source}: ${vote}`));
  return [
    h("div", { class: "card" }, h("div", { class: "meta" }, position, why, ...votes), text,
      q.note ? h("p", { class: "note", dir: "auto" }, h("b", {}, "Note "), q.note) : null),
    many ? sentence.drawGuess(q, toggler()) : guess(q),
    h("div", { class: "classes", role: "group", "aria-label": "Classes" },
      ...classes.map((each, index) => classButton(each.name, index, q)), adder(classes.length)),
    tools(q),
  ];
}

function toggler() {
  return h("button", { type: "button", class: "link", onclick: toggleGuess, "aria-keyshortcuts": "h" },
    app.hidesGuess ? "Show the guess" : "Hide");
}

/** @param {import("./types.js").Question} q @returns {HTMLElement} */
function guess(q) {
  const hidden = app.hidesGuess, toggle = toggler();
  if (q.guess === null) return h("p", { class: "guess" }, (app.progress?.classes ?? []).filter((each) => each.labels).length < 2
    ? "The model starts when two classes have labels." : "The model is learning. Its guess comes in a moment.");
  if (hidden) return h("p", { class: "guess" }, "The model's guess is hidden. ", toggle);
  const source = app.progress?.initial ? "First guess" : "Model";
  return h("p", { class: "guess" }, `${source}: `, h("b", {}, q.guess), ` ${percent(q.confidence)} `, toggle);
}

/** @param {string} name @param {number} index @param {import("./types.js").Question} q */
function classButton(name, index, q) {
  const key = index < 9 ? String(index + 1) : index === 9 ? "0" : null;
  const chance = app.hidesGuess ? null : (q.chances.find(([each]) => each === name)?.[1] ?? null);
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  if (chance !== null) bar.style.width = `${Math.max(1, 100 * chance)}%`;
  return h(
    "button",
    { type: "button", class: `class ${colour(index)}${q.label === name ? " chosen" : ""}`, "data-name": name,
      "aria-keyshortcuts": key, "aria-pressed": q.label === name ? "true" : "false", onclick: () => choose(name) },
    h("kbd", { "aria-hidden": "true" }, key ?? "·"),
    h("span", { class: "name", dir: "auto" }, name),
    chance === null ? null : h("span", { class: "chance" }, percent(chance)),
    chance === null ? null : bar,
  );
}

/** @param {number} count */
function adder(count) {
  return h("button", { type: "button", class: "class new", onclick: add, "aria-keyshortcuts": "a" },
    h("kbd", { "aria-hidden": "true" }, "A"), h("span", { class: "name" }, count ? "New class" : "Add the first class"));
}

/** @param {import("./types.js").Question} q */
function tools(q) {
  const tool = (/** @type {string} */ key, /** @type {string} */ name, /** @type {() => void} */ run, pressed = false, off = false) =>
    h("button", { type: "button", class: pressed ? "tool on" : "tool", onclick: run, disabled: off,
      "aria-keyshortcuts": key.toLowerCase(), "aria-pressed": name.startsWith("Flag") ? String(pressed) : null },
      h("kbd", { "aria-hidden": "true" }, key), name);
  const saver = h("button", { type: "button", class: "tool save", onclick: saveEntities, "aria-keyshortcuts": "Enter" },
    h("kbd", { "aria-hidden": "true" }, "↵"), sentence.isUntouched() && q.guess !== null ? "Accept" : "Save");
  return h("div", { class: "tools", role: "toolbar", "aria-label": `This ${app.progress?.unit}` },
    ...(sentence.isSentences() ? [saver, tool("⌫", "Remove", unmark)] : []),
    tool("S", "Skip", skip),
    tool("U", "Undo", undo, false, !app.progress?.can_undo),
    tool("F", q.flag ? "Flagged" : "Flag", flag, q.flag),
    tool("N", q.note ? "Edit note" : "Note", note),
    tool("G", "Guidelines", guideline));
}

function empty() {
  if (!asked) return h("p", { class: "empty" }, "Loading…");
  return h("div", { class: "empty" }, h("h2", {}, `Every ${app.progress?.unit} has been labelled or skipped`),
    h("p", {}, "Check the labels that the model doubts in the tab Check, or choose Finish."),
    h("button", { type: "button", class: "tool", onclick: undo }, h("kbd", { "aria-hidden": "true" }, "U"), "Undo"));
}

function classButtons() {
  return /** @type {HTMLButtonElement[]} */ ([...document.querySelectorAll(".classes .class[data-name]")]);
}

/** @returns {string|null} */
function focusedClass() {
  const focused = document.activeElement;
  return focused instanceof HTMLElement && focused.dataset.name !== undefined ? focused.dataset.name : null;
}

/** Whether a text is code, which is shown in a fixed width. @param {string} text */
function looksLikeCode(text) {
  const lines = text.split("\n");
  const marks = lines.filter((line) => /^(\s{2,}|\t)|[{};]\s*$|^\s*(def|class|import|#include|function|const|let|var)\b/.test(line));
  return lines.length >= 3 && marks.length > lines.length / 2;
}
