// @ts-check
// Elements are made here and nowhere else. Texts become text nodes: nothing from a table is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. Properties whose name begins with "on" are listeners; true is an attribute without a value; false, null
 * and undefined leave an attribute out.
 *
 * @param {string} tag
 * @param {Object<string, any>} [properties]
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  set(element, properties);
  append(element, children);
  return element;
}

/**
 * An element of a drawing.
 *
 * @param {string} tag
 * @param {Object<string, any>} [properties]
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {SVGElement}
 */
export function s(tag, properties = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  set(element, properties);
  append(element, children);
  return element;
}

/** @param {Element} element @param {...(Node|string|null|false)} children */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element;
}

/** Tell screen readers. @param {string} text */
export function announce(text) {
  byId("live").textContent = text;
}

/** @param {number|null|undefined} share @returns {string} */
export function percent(share, digits = 0) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`;
}

/** @param {number} count @returns {string} */
export function grouped(count) {
  return count.toLocaleString("en");
}

/** @param {number} index @returns {string} the style class of the colour of a class */
export function colour(index) {
  return `c${index < 0 ? "x" : index % 10}`;
}

/** @param {Element} element @param {Object<string, any>} properties */
function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in element) /** @type {any} */ (element).value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {Element} element @param {(Node|string|number|null|undefined|false)[]} children */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}
