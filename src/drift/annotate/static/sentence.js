// @ts-check
// The sentence that is shown: its entities as the person has them, and what the keys do to them.

import { announce, h, percent } from "./dom.js";
import { app } from "./state.js";
import { Words } from "./words.js";

/** @type {Words|null} */
let words = null;
/** @type {import("./types.js").Question|null} */
let shown = null;
let touched = false; // whether the person has changed the entities that the model had marked

/** Whether the session is about sentences. */
export function isSentences() {
  return app.progress?.unit === "sentence";
}

/** The entities to save. @returns {import("./words.js").Entity[]} */
export function entities() {
  return words?.entities ?? [];
}

/** Whether a question shows entities that nobody has looked at yet. */
export function isUntouched() {
  return !touched && shown?.label === null;
}

/** @param {import("./types.js").Question} q @returns {HTMLElement} */
export function drawWords(q) {
  const types = (app.progress?.classes ?? []).map((each) => each.name);
  const marked = /** @type {import("./words.js").Entity[]} */ (q.label ?? (app.hidesGuess ? [] : q.guess ?? []));
  if (!words || shown?.row !== q.row || shown.label !== q.label) {
    words = new Words(q.words ?? [], q.gaps ?? [], marked, types);
    touched = false;
  } else if (isUntouched()) words.entities = marked.map((each) => [...each]);
  words.types = types;
  shown = q;
  return words.draw(`Sentence ${q.row + 1}`, isUntouched());
}

/** @param {import("./types.js").Question} q @param {HTMLElement} toggle */
export function drawGuess(q, toggle) {
  if (q.guess === null) return h("p", { class: "guess" }, "The model is learning, or starts when a type has a label. Mark entities as you read.");
  if (app.hidesGuess) return h("p", { class: "guess" }, "The model's entities are hidden. ", toggle);
  const count = q.guess.length;
  const found = `${count || "no"} ${count === 1 ? "entity" : "entities"}`;
  return h("p", { class: "guess" }, app.progress?.initial ? "First guess: " : "Model: ", h("b", {}, found), `, least sure word ${percent(q.confidence)} `, toggle);
}

/** Give the selected words a type. @param {string} type @returns {boolean} whether words were selected */
export function mark(type) {
  if (!words?.selecting) {
    announce("Select words first: with the mouse, or with the arrow keys.");
    return false;
  }
  words.mark(type);
  touched = true;
  announce(`${words.said()}.`);
  return true;
}

/** Take the type of the selected words away. */
export function unmark() {
  if (!words?.unmark()) return false;
  touched = true;
  announce(`${words.said()}: no entity.`);
  return true;
}

/** Move the cursor to another word. @param {number} step @param {boolean} extend */
export function moveWord(step, extend) {
  if (!words) return;
  const leftwards = words.box !== null && getComputedStyle(words.box).direction === "rtl";
  if (!words.selecting) words.point(step > 0 ? 0 : words.words.length - 1, false);
  else words.move(leftwards ? -step : step, extend);
  words.paint();
  announce(words.said());
}

/** Go to the next entity, or the one before. @param {number} step */
export function jump(step) {
  words?.jump(step);
  words?.paint();
  announce(words?.said() ?? "");
}
