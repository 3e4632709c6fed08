// @ts-check
// The page: tabs, keys, and looking for news from the training process.

import { get } from "./api.js";
import { drawAside } from "./aside.js";
import { drawCheck } from "./check.js";
import { anyDialog, finishDialog, keysDialog } from "./dialogs.js";
import { byId } from "./dom.js";
import * as label from "./label.js";
import { drawList } from "./list.js";
import { isSentences, jump, moveWord } from "./sentence.js";
import { app } from "./state.js";

const TABS = ["label", "list", "check"];
const POLL = 1500; // milliseconds

/** @param {string} name */
export function showTab(name) {
  for (const each of TABS) {
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    byId(`view-${each}`).hidden = each !== name;
  }
  if (name === "list") drawList(openText);
  if (name === "check") drawCheck(openText);
  if (name === "label") label.draw();
}

/** @param {number} row */
async function openText(row) {
  showTab("label");
  await label.open(row);
}

/** @type {Object<string, () => unknown>} */
const KEYS = {
  s: label.skip, ArrowRight: label.skip, u: label.undo, ArrowLeft: label.undo, f: label.flag, n: label.note,
  g: label.guideline, h: label.toggleGuess, a: label.add, ArrowDown: () => label.move(1), ArrowUp: () => label.move(-1),
  Enter: label.accept,
};

/** In place of some of these where words are marked. @type {Object<string, (event: KeyboardEvent) => unknown>} */
const WORD_KEYS = {
  ArrowRight: (event) => moveWord(1, event.shiftKey), ArrowLeft: (event) => moveWord(-1, event.shiftKey),
  ArrowDown: () => jump(1), ArrowUp: () => jump(-1), Backspace: label.unmark, Delete: label.unmark,
};

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (anyDialog() || target.matches("input, textarea, select")) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "z") return act(event, label.undo);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") return act(event, keysDialog);
  if (target.getAttribute("role") === "tab" && ["ArrowLeft", "ArrowRight"].includes(event.key)) return moveTab(event);
  if (byId("view-label").hidden) return;
  const movesClass = target.dataset.name !== undefined && ["ArrowUp", "ArrowDown"].includes(event.key);
  const words = isSentences() && !movesClass ? WORD_KEYS[event.key] : undefined;
  if (words) return act(event, () => words(event));
  const scrolls = target.id === "text" && ["ArrowUp", "ArrowDown"].includes(event.key);
  if (scrolls && target.scrollHeight > target.clientHeight) return;
  if (event.key === "Enter" && target.matches("button, a") && (isSentences() || !target.dataset.name)) return;
  if (event.repeat && !event.key.startsWith("Arrow")) return; // a key that is held down labels one text
  const number = "1234567890".indexOf(event.key);
  const chosen = number >= 0 ? app.progress?.classes[number] : undefined;
  if (chosen) return act(event, () => label.choose(chosen.name));
  const run = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (run) act(event, run);
}

/** @param {KeyboardEvent} event @param {() => unknown} run */
function act(event, run) {
  event.preventDefault();
  run();
}

/** @param {KeyboardEvent} event */
function moveTab(event) {
  const at = TABS.findIndex((name) => byId(`tab-${name}`) === event.target);
  const next = TABS[(at + (event.key === "ArrowRight" ? 1 : TABS.length - 1)) % TABS.length];
  event.preventDefault();
  showTab(next);
  byId(`tab-${next}`).focus();
}

/** Ask for news. The text that is read stays; only the guess beside it may change. */
async function poll() {
  if (document.visibilityState === "visible") {
    await app.guarded(async () => {
      const before = app.progress;
      const now = await get("progress");
      const news = !before || before.version !== now.version || before.rounds !== now.rounds || before.training !== now.training;
      if (news) app.update(now);
      if (before && before.rounds !== now.rounds && !byId("view-label").hidden) await label.refresh();
    });
  }
  setTimeout(poll, POLL);
}

let classes = "";

/** Draw the text again, whose classes and guess have other names now. */
function classesChanged() {
  const now = JSON.stringify(app.progress?.classes.map((each) => each.name));
  if (classes && now !== classes) app.guarded(label.refresh);
  classes = now;
}

async function begin() {
  for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => showTab(name));
  byId("help").addEventListener("click", keysDialog);
  byId("finish").addEventListener("click", finishDialog);
  document.addEventListener("keydown", onKey);
  app.listeners.push((progress) => drawAside(progress, openText), () => classesChanged());
  await app.guarded(async () => app.update(await get("progress")));
  if (isSentences()) byId("tab-list").textContent = "All sentences";
  await label.start();
  setTimeout(poll, POLL);
}

begin();
