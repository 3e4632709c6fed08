// @ts-check
// The words of a sentence, in which entities are marked with the mouse or with shift and the arrow keys.

import { colour, h } from "./dom.js";

/** @typedef {[number, number, string]} Entity the words from the first number up to the second, and a type */

/** Words, a cursor or selection in them, and entities. It knows nothing of the server. */
export class Words {
  /**
   * @param {string[]} words @param {string[]} gaps what stands before, between and after the words
   * @param {Entity[]} entities @param {string[]} types
   */
  constructor(words, gaps, entities, types) {
    this.words = words;
    this.gaps = gaps;
    this.entities = entities.map((each) => /** @type {Entity} */ ([...each]));
    this.types = types;
    this.fixed = 0; // the end of the selection that stays
    this.cursor = 0; // the end that moves
    this.selecting = false;
    this.dragging = false;
    /** @type {HTMLElement|null} */
    this.box = null;
  }

  /** The selected words: first, and one after the last. @returns {[number, number]} */
  get selection() {
    return [Math.min(this.fixed, this.cursor), Math.max(this.fixed, this.cursor) + 1];
  }

  /** @param {number} word @returns {Entity|undefined} */
  at(word) {
    return this.entities.find(([start, end]) => start <= word && word < end);
  }

  /** Move the cursor. @param {number} step @param {boolean} extend whether the selection grows with it */
  move(step, extend) {
    this.point(Math.min(this.words.length - 1, Math.max(0, this.cursor + step)), extend);
  }

  /** @param {number} word @param {boolean} extend */
  point(word, extend) {
    this.cursor = word;
    if (!extend) this.fixed = word;
    this.selecting = true;
  }

  /** Go to the next entity, or the one before, and select it. @param {number} step */
  jump(step) {
    const sorted = [...this.entities].sort((a, b) => a[0] - b[0]);
    const [start, end] = this.selection;
    const next = step > 0 ? sorted.find((each) => each[0] >= (this.selecting ? end : 0)) : sorted.reverse().find((each) => each[1] <= start);
    if (!next) return;
    this.fixed = next[0];
    this.point(next[1] - 1, true);
  }

  /** Give the selected words a type; an entity that is selected as it is changes its type. @param {string} type */
  mark(type) {
    const [start, end] = this.extent();
    this.entities = [...this.entities.filter((each) => each[1] <= start || each[0] >= end), /** @type {Entity} */ ([start, end, type])];
    this.entities.sort((a, b) => a[0] - b[0]);
  }

  /** Take the type of the selected words away. @returns {boolean} whether there was one */
  unmark() {
    const [start, end] = this.selection;
    const kept = this.entities.filter((each) => each[1] <= start || each[0] >= end);
    const found = kept.length < this.entities.length;
    this.entities = kept;
    return found;
  }

  /** The selection; a cursor inside an entity stands for all of it. @returns {[number, number]} */
  extent() {
    const [start, end] = this.selection;
    const inside = end - start === 1 ? this.at(start) : undefined;
    return inside ? [inside[0], inside[1]] : [start, end];
  }

  /** The selected words with their type, for screen readers. */
  said() {
    const [start, end] = this.selection;
    const type = this.at(this.cursor)?.[2];
    return `${this.words.slice(start, end).join(" ")}${type ? `, ${type}` : ""}`;
  }

  /**
   * @param {string} label @param {boolean} predicted whether the entities are the model's, to accept or fix
   * @returns {HTMLElement}
   */
  draw(label, predicted) {
    const box = h("div", { id: "text", class: "text words", dir: "auto", tabindex: 0, role: "listbox",
      "aria-multiselectable": "true", "aria-label": label, onpointerup: () => { this.dragging = false; } });
    this.words.forEach((name, word) => {
      const entity = this.at(word);
      const begins = entity?.[0] === word, ends = entity?.[1] === word + 1;
      const style = entity ? `entity ${colour(this.types.indexOf(entity[2]))}${predicted ? " predicted" : ""}` : "";
      const gap = this.gaps[word] ?? "";
      box.append(entity && !begins ? h("span", { class: `gap ${style}` }, gap) : gap);
      box.append(h("span", { id: `word-${word}`, class: `word ${style}${begins ? " first" : ""}${ends ? " last" : ""}`, role: "option",
        "data-word": word, "aria-label": entity ? `${name}, ${entity[2]}` : name,
        onpointerdown: (/** @type {PointerEvent} */ event) => this.press(event, word),
        onpointerenter: () => { if (this.dragging) { this.point(word, true); this.paint(); } } },
        name, entity && ends ? h("small", { class: "type", "aria-hidden": "true" }, entity[2]) : null));
    });
    box.append(this.gaps[this.words.length] ?? "");
    this.box = box;
    this.paint();
    return box;
  }

  /** Show the selection. The words stay, so that the mouse can go on. */
  paint() {
    const [from, to] = this.selection;
    this.box?.setAttribute("aria-activedescendant", `word-${this.cursor}`);
    for (const element of this.box?.querySelectorAll(".word") ?? []) {
      const word = Number(/** @type {HTMLElement} */ (element).dataset.word);
      const chosen = this.selecting && from <= word && word < to;
      element.classList.toggle("chosen", chosen);
      element.setAttribute("aria-selected", String(chosen));
    }
    if (this.selecting) this.box?.querySelector(`#word-${this.cursor}`)?.scrollIntoView({ block: "nearest" });
  }

  /** @param {PointerEvent} event @param {number} word */
  press(event, word) {
    if (event.button) return;
    event.preventDefault(); // words are selected here, not by the browser
    const pressed = /** @type {HTMLElement} */ (event.target);
    if (pressed.hasPointerCapture(event.pointerId)) pressed.releasePointerCapture(event.pointerId); // a finger enters other words, too
    this.dragging = true;
    this.point(word, event.shiftKey);
    this.paint();
    this.box?.focus({ preventScroll: true });
  }
}
