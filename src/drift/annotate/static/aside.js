// @ts-check
// The progress beside the text: accuracy, curve, classes, and predictions that changed.

import { act } from "./api.js";
import { editClass } from "./dialogs.js";
import { byId, colour, fill, grouped, h, percent, s } from "./dom.js";
import { app } from "./state.js";

const WIDTH = 280, HEIGHT = 110, LEFT = 30, BOTTOM = 18, TOP = 6;

/** @param {import("./types.js").Progress} progress @param {(row: number) => void} open */
export function drawAside(progress, open) {
  fill(byId("aside"), accuracy(progress), classes(progress), changed(progress, open));
}

/** @param {import("./types.js").Progress} p */
function accuracy(p) {
  const at = p.estimate;
  const training = h("span", { class: p.training ? "spin on" : "spin" }, p.training ? "learning" : "up to date");
  const head = h("div", { class: "panel-head" }, h("h2", {}, p.unit === "sentence" ? "Sentences without a mistake" : "Accuracy"), training);
  const counts = h("p", { class: "small" }, `${grouped(p.labels)} of ${grouped(p.usable)} labelled`,
    p.skipped ? ` · ${grouped(p.skipped)} skipped` : "", p.flagged ? ` · ${grouped(p.flagged)} flagged` : "");
  if (!p.audit_every) return h("section", { class: "panel" }, head, h("p", {}, "There is no estimate: the random audit is off."), counts);
  const known = at.accuracy !== null && p.advice.verdict !== "early"; // a share of three texts would only mislead
  const big = h("p", { class: known ? "big" : "big none" }, known ? percent(at.accuracy) : "–",
    known ? h("span", { class: "interval" }, `${percent(at.low).replace(" %", "")}–${percent(at.high)}`) : null);
  const basis = h("p", { class: "small" }, known
    ? `${at.right} of ${at.audited} random audits right, 95 % interval`
    : `Every ${ordinal(p.audit_every)} ${p.unit} is drawn at random to measure this.${at.audited ? ` So far ${at.right} of ${at.audited} were right.` : ""}`);
  return h("section", { class: "panel" }, head, big, basis, curve(p),
    h("p", { class: `advice ${p.advice.verdict.replace(" ", "-")}` }, p.advice.text), counts);
}

/** Accuracy against labels, with its interval. @param {import("./types.js").Progress} p */
function curve(p) {
  const rounds = p.curve.filter((round) => round.accuracy !== null);
  if (rounds.length < 2) return null;
  const most = rounds[rounds.length - 1].labels;
  const least = rounds[0].labels;
  const x = (/** @type {number} */ labels) => LEFT + ((labels - least) / Math.max(1, most - least)) * (WIDTH - LEFT - 6);
  const y = (/** @type {number} */ share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  const line = rounds.map((round) => `${x(round.labels)},${y(round.accuracy ?? 0)}`).join(" ");
  const band = [...rounds.map((round) => `${x(round.labels)},${y(round.high)}`),
    ...rounds.slice().reverse().map((round) => `${x(round.labels)},${y(round.low)}`)].join(" ");
  const grid = [0, 0.5, 1].flatMap((share) => [
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - 6, y1: y(share), y2: y(share) }),
    s("text", { class: "tick", x: LEFT - 6, y: y(share) + 3.5, "text-anchor": "end" }, `${100 * share}`),
  ]);
  const last = rounds[rounds.length - 1];
  return s("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Accuracy in percent from ${least} to ${most} labels: now ${percent(last.accuracy)}` },
    ...grid, s("polygon", { class: "band", points: band }), s("polyline", { class: "line", points: line }),
    s("circle", { class: "dot", cx: x(most), cy: y(last.accuracy ?? 0), r: 3 }),
    s("text", { class: "tick", x: LEFT, y: HEIGHT - 4 }, `${least}`),
    s("text", { class: "tick", x: WIDTH - 6, y: HEIGHT - 4, "text-anchor": "end" }, `${most} labels`));
}

/** @param {import("./types.js").Progress} p */
function classes(p) {
  const rows = p.classes.map((each, index) => {
    const bar = h("span", { class: `share ${colour(index)}`, "aria-hidden": "true" });
    bar.style.width = `${100 * (each.share ?? 0)}%`;
    return h("li", {},
      h("button", { type: "button", class: "class-row", onclick: () => edit(each, p), title: "Rename, merge or describe" },
        h("span", { class: `dot ${colour(index)}`, "aria-hidden": "true" }),
        h("span", { class: "name", dir: "auto" }, each.name),
        h("span", { class: "count" }, grouped(each.labels), h("span", { class: "visually-hidden" }, " labels, predicted for ")),
        h("span", { class: "part" }, percent(each.share))),
      h("span", { class: "track", "aria-hidden": "true" }, bar));
  });
  return h("section", { class: "panel" },
    h("div", { class: "panel-head" }, h("h2", {}, "Classes"), h("span", { class: "small" }, "labels · predicted share")),
    rows.length ? h("ul", { class: "class-list" }, ...rows) : h("p", { class: "small" }, "There is no class yet. Press A to add one."));
}

/** @param {import("./types.js").ClassInfo} each @param {import("./types.js").Progress} p */
async function edit(each, p) {
  for (const action of await editClass(each, p.classes) ?? []) {
    await app.saving(async () => app.update((await act(action)).progress));
  }
}

/** @param {import("./types.js").Progress} p @param {(row: number) => void} open */
function changed(p, open) {
  if (!p.rounds) return null;
  const items = p.changed.slice(0, 5).map((each) => h("li", {},
    h("button", { type: "button", class: "change", onclick: () => open(each.row) },
      h("span", { class: "from-to" }, each.before, h("span", { "aria-label": "now" }, " → "), h("b", {}, each.after)),
      h("span", { class: "excerpt", dir: "auto" }, each.text))));
  const count = p.changed_count ? `${p.changed_count >= 200 ? "200 or more" : p.changed_count} ${p.unit}${p.changed_count === 1 ? "" : "s"}` : "none";
  return h("section", { class: "panel" },
    h("div", { class: "panel-head" }, h("h2", {}, "Changed in the last round"), h("span", { class: "small" }, count)),
    items.length ? h("ul", { class: "changes" }, ...items) : null);
}

/** @param {number} n */
function ordinal(n) {
  return { 2: "second", 3: "third", 4: "fourth", 5: "fifth", 10: "tenth" }[n] ?? `${n}th`;
}
