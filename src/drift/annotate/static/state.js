// @ts-check
// What all parts of the page share: the progress, whether the last action is on disk, and what the person set.

import { Refused, Unreachable } from "./api.js";
import { byId } from "./dom.js";

const HIDDEN = "hide-guess";

class App {
  /** @type {import("./types.js").Progress|null} */
  progress = null;
  hidesGuess = localStorage.getItem(HIDDEN) === "yes";
  /** @type {((progress: import("./types.js").Progress) => void)[]} */
  listeners = [];

  /** @param {import("./types.js").Progress} progress */
  update(progress) {
    this.progress = progress;
    for (const listener of this.listeners) listener(progress);
  }

  /** @param {boolean} hidden */
  setHidden(hidden) {
    this.hidesGuess = hidden;
    localStorage.setItem(HIDDEN, hidden ? "yes" : "no");
  }

  /** Run a change; the page says "Saved" only when it is on disk. @param {() => Promise<void>} change */
  async saving(change) {
    this.mark("saving", "Saving…");
    if (await this.guarded(change)) this.mark("saved", "Saved");
  }

  /** Run something that needs the server. @param {() => Promise<void>} call @returns {Promise<boolean>} */
  async guarded(call) {
    try {
      await call();
      this.reachable();
      return true;
    } catch (error) {
      if (error instanceof Unreachable) this.lost();
      else if (error instanceof Refused) this.complain(error.message);
      else throw error;
      return false;
    }
  }

  lost() {
    this.mark("lost", "Not connected");
    this.show("drift annotate does not answer, so nothing can be saved. Start the same command again and open the page it prints: all labels that were saved are there.");
  }

  reachable() {
    const banner = byId("banner");
    if (!banner.hidden) banner.hidden = true;
    if (byId("saved").dataset.state !== "saved") this.mark("saved", "Saved");
  }

  /** @param {string} text */
  complain(text) {
    this.mark("lost", "Not saved");
    this.show(text);
  }

  /** @param {string} text */
  show(text) {
    const banner = byId("banner");
    banner.textContent = text;
    banner.hidden = false;
  }

  /** @param {string} state @param {string} text */
  mark(state, text) {
    const saved = byId("saved");
    saved.dataset.state = state;
    saved.textContent = text;
  }
}

export const app = new App();

/** What a row is called. @param {number} row @returns {string} */
export function named(row) {
  return `${app.progress?.unit === "sentence" ? "Sentence" : "Text"} ${row + 1}`;
}
