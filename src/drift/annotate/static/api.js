// @ts-check
// Talking to the server. Addresses are relative, so that the token stays in front of them.

const CLIENT = sessionStorage.getItem("client") ?? Math.random().toString(36).slice(2);
sessionStorage.setItem("client", CLIENT);

/** The server refused, and said why. */
export class Refused extends Error {}

/** The server does not answer: nothing was saved. */
export class Unreachable extends Error {}

/** @param {string} path @param {Object<string, string|number>} [query] @returns {Promise<any>} */
export function get(path, query = {}) {
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return answer(fetch(`api/${path}?${search}`));
}

/** @param {string} path @param {Object<string, any>} content @returns {Promise<any>} */
export function post(path, content) {
  const headers = { "content-type": "application/json" };
  return answer(fetch(`api/${path}`, { method: "POST", headers, body: JSON.stringify(content) }));
}

/** The text to label in this tab. @returns {Promise<import("./types.js").Question|null>} */
export function nextQuestion() {
  return get("next", { client: CLIENT });
}

/**
 * One action of the person; it is on disk when this returns.
 *
 * @param {Object<string, any>} action
 * @param {boolean} [ask] whether to get the next text too
 * @returns {Promise<{progress: import("./types.js").Progress, question?: import("./types.js").Question|null}>}
 */
export function act(action, ask = false) {
  return post("act", { ...action, ask, client: CLIENT });
}

/** @param {Promise<Response>} request @returns {Promise<any>} */
async function answer(request) {
  let response;
  try {
    response = await request;
  } catch {
    throw new Unreachable("drift annotate does not answer");
  }
  let content;
  try {
    content = await response.json();
  } catch {
    throw new Unreachable(`drift annotate answered with status ${response.status}`);
  }
  if (!response.ok) throw new Refused(content.error ?? `status ${response.status}`);
  return content;
}
