// @ts-check
// Dialogs: keys, guidelines, notes, classes, and the end. Escape closes each of them.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { isSentences } from "./sentence.js";
import { app } from "./state.js";

const KEYS = [
  ["1 – 9, 0", "Label with this class"], ["↑ ↓, Enter", "Move between classes, and choose; Enter alone accepts the guess"],
  ["S or →", "Skip"], ["U, ← or Ctrl Z", "Undo the last action"], ["F", "Flag"], ["N", "Note"], ["G", "Guidelines"],
  ["H", "Show or hide the model's guess"], ["A", "Add a class"], ["?", "This list"],
];

const WORD_KEYS = [
  ["← →", "Move between words; with Shift, select several"], ["1 – 9, 0", "Mark the selected words with this type"],
  ["↑ ↓", "Go to the entity before, or the next one"], ["Backspace", "Remove the entity"],
  ["Enter", "Save the sentence as it is marked: accept"], ["S", "Skip"], ["U or Ctrl Z", "Undo the last action"],
];

export function anyDialog() {
  return document.querySelector("dialog[open]") !== null;
}

export function keysDialog() {
  const keys = isSentences() ? [...WORD_KEYS, ...KEYS.slice(4)] : KEYS;
  const rows = keys.flatMap(([keys, meaning]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, meaning)]);
  dialog("Keys", [h("dl", { class: "keys" }, ...rows)]);
}

/** @param {import("./types.js").ClassInfo[]} classes @param {string|null} focused */
export function showGuideline(classes, focused) {
  const shown = focused ? classes.filter((each) => each.name === focused) : classes;
  const parts = shown.flatMap((each) => [h("h3", { dir: "auto" }, each.name),
    h("p", { class: "guideline", dir: "auto" }, each.guideline || "There is no guideline. Choose the class in the list of classes to write one.")]);
  dialog("Guidelines", parts.length ? parts : [h("p", {}, "There is no class yet.")]);
}

/** @param {string} now @returns {Promise<string|null>} */
export function editNote(now) {
  const area = field(h("textarea", { id: "note", rows: 4, maxlength: 4000, value: now, dir: "auto" }));
  return form("Note", [h("label", { for: "note" }, `What should be remembered about this ${app.progress?.unit}?`), area], "Save", () => area.value);
}

/** @returns {Promise<{name: string, guideline: string}|null>} */
export function addClass() {
  const name = field(h("input", { id: "class-name", maxlength: 60, required: true, autocomplete: "off", dir: "auto" }));
  const guideline = field(h("textarea", { id: "class-guideline", rows: 3, maxlength: 4000, dir: "auto" }));
  return form("New class", [h("label", { for: "class-name" }, "Name"), name,
    h("label", { for: "class-guideline" }, "What belongs into it (optional)"), guideline], "Add",
    () => (name.value.trim() ? { name: name.value, guideline: guideline.value } : null));
}

/**
 * @param {import("./types.js").ClassInfo} each
 * @param {import("./types.js").ClassInfo[]} classes
 * @returns {Promise<Object<string, string>[]|null>} the actions to send
 */
export function editClass(each, classes) {
  const name = field(h("input", { id: "class-name", maxlength: 60, value: each.name, autocomplete: "off", dir: "auto" }));
  const guideline = field(h("textarea", { id: "class-guideline", rows: 4, maxlength: 4000, value: each.guideline, dir: "auto" }));
  const others = classes.filter((other) => other.name !== each.name);
  const into = h("select", { id: "class-into" }, h("option", { value: "" }, "Keep it"),
    ...others.map((other) => h("option", { value: other.name }, `Merge into ${other.name}`)));
  const result = () => {
    const target = /** @type {HTMLSelectElement} */ (into).value;
    if (target) return [{ do: "merge", class: each.name, into: target }];
    const actions = [];
    if (guideline.value.trim() !== each.guideline) actions.push({ do: "guideline", class: each.name, text: guideline.value });
    if (name.value.trim() && name.value.trim() !== each.name) actions.push({ do: "rename", class: each.name, name: name.value });
    return actions;
  };
  return form(each.name, [h("label", { for: "class-name" }, "Name"), name,
    h("label", { for: "class-guideline" }, "What belongs into it"), guideline,
    h("label", { for: "class-into" }, `Merge (${each.labels} labels go along)`), into], "Save", result);
}

/** Write the labels and train the final run. */
export async function finishDialog() {
  const body = h("div", { class: "finish" });
  const box = dialog("Finish", [body]);
  const again = async () => {
    const status = await get("finish");
    body.replaceChildren(...finishParts(status, again));
    if (status.state === "training" && box.isConnected) setTimeout(() => app.guarded(again), 1000);
  };
  await app.guarded(again);
}

/** @param {import("./types.js").FinishStatus} status @param {() => Promise<void>} again @returns {HTMLElement[]} */
function finishParts(status, again) {
  const start = (/** @type {boolean} */ train) => app.guarded(async () => { await post("finish", { train }); await again(); });
  const command = (/** @type {string} */ title, /** @type {string|undefined} */ text) =>
    [h("p", { class: "small" }, title), h("pre", { class: "command", tabindex: 0 }, text ?? "")];
  const needed = isSentences() ? 1 : 2; // words without a type are a class, too
  const enough = (app.progress?.classes ?? []).filter((each) => each.labels).length >= needed;
  switch (status.state) {
    case "training":
      return [h("p", {}, `${status.labels} labels are in ${status.out}.`),
        h("p", { class: "spin on", role: "status" }, "Training the final run. This takes a minute or more."), ...command("The same as", status.fit)];
    case "done":
      return [h("p", { role: "status" }, `The final run is trained. Labels: ${status.out}.`), h("p", {}, h("a", { href: "report", target: "_blank", rel: "noopener" }, "Open its report")),
        ...command("Predict new texts", status.predict), ...command("Train again", status.fit)];
    default:
      return [status.state === "failed" ? h("p", { class: "advice early", role: "alert" }, `The final run failed: ${status.error}`) : h("p", {},
        `Write ${status.labels} labels to ${status.out}, and train a model on them with drift fit.`),
        status.state === "written" ? h("p", { role: "status" }, "The labels are written.") : h("span", {}),
        enough ? h("p", { class: "small" }, "You can go on labelling afterwards, and finish again.") : h("p", { class: "small" }, isSentences() ? "A sentence with an entity is needed to train." : "Labels of at least two classes are needed to train."),
        h("div", { class: "buttons" }, h("button", { type: "button", class: "tool", onclick: () => start(false) }, "Only write the labels"),
          h("button", { type: "button", class: "primary", id: "train", disabled: !enough, onclick: () => start(true) }, "Write and train"))];
  }
}

/** @param {HTMLElement} element @returns {HTMLInputElement} */
function field(element) {
  return /** @type {HTMLInputElement} */ (element);
}

/** @param {string} title @param {(HTMLElement|null)[]} parts @returns {HTMLDialogElement} */
function dialog(title, parts) {
  const back = document.activeElement;
  const close = () => box.close();
  const box = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "dialog-title" },
    h("div", { class: "dialog-head" }, h("h2", { id: "dialog-title", dir: "auto" }, title),
      h("button", { type: "button", class: "quiet", onclick: close, "aria-label": "Close" }, "Close")), ...parts));
  box.addEventListener("close", () => { box.remove(); if (back instanceof HTMLElement && back.isConnected) back.focus(); });
  document.body.append(box);
  box.showModal();
  return box;
}

/**
 * A dialog with fields; the promise gives null if it is closed without saving.
 *
 * @template T
 * @param {string} title @param {HTMLElement[]} parts @param {string} save @param {() => T|null} result
 * @returns {Promise<T|null>}
 */
function form(title, parts, save, result) {
  return new Promise((resolve) => {
    /** @type {T|null} */
    let given = null;
    const content = h("form", { class: "form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); given = result(); box.close(); },
      onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) /** @type {HTMLFormElement} */ (content).requestSubmit(); } },
      ...parts, h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, save)));
    const box = dialog(title, [content]);
    box.addEventListener("close", () => resolve(given));
    /** @type {HTMLElement} */ (content.querySelector("input, textarea")).focus();
  });
}
