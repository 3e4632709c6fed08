// @ts-check
// Labels that are probably wrong: heads that were not trained on them predict another class.

import { act, get } from "./api.js";
import { announce, byId, colour, fill, h, percent } from "./dom.js";
import { app, named } from "./state.js";

/** @param {(row: number) => void} open */
export async function drawCheck(open) {
  await app.guarded(async () => {
    const found = await get("errors");
    /** @type {import("./types.js").ListRow[]} */
    const rows = found.rows;
    const about = found.judged
      ? `${rows.length} of ${found.judged} labels differ from what the model predicts when it has not seen them. The surest come first. Some are mistakes; others are right, and the model does not understand them.`
      : "Once there are labels of two classes, labels that the model doubts are listed here.";
    fill(byId("view-check"), h("h2", {}, "Labels to check"), h("p", { class: "small about" }, about),
      rows.length ? h("ul", { class: "rows" }, ...rows.map((row) => item(row, open))) : null,
      found.judged && !rows.length ? h("p", { class: "empty" }, "No label is in doubt.") : null);
  });
}

/** @param {import("./types.js").ListRow} row @param {(row: number) => void} open */
function item(row, open) {
  const names = (app.progress?.classes ?? []).map((each) => each.name);
  const label = row.shown_label ?? "", predicted = row.shown_prediction ?? "";
  const sentences = app.progress?.unit === "sentence";
  return h("li", { class: "row check", "data-row": row.row },
    h("button", { type: "button", class: "row-text", dir: "auto", onclick: () => open(row.row) }, row.text),
    h("div", { class: "row-side" },
      h("span", { class: `tag solid ${colour(names.indexOf(label))}` }, label, h("small", {}, "label")),
      h("span", { class: `tag ${colour(names.indexOf(predicted))}` }, predicted, h("small", {}, `model ${percent(row.confidence)}`)),
      h("button", { type: "button", class: "tool", onclick: () => correct(row, open) },
        sentences ? "Change to the prediction" : `Change to ${predicted}`)));
}

/** @param {import("./types.js").ListRow} row @param {(row: number) => void} open */
async function correct(row, open) {
  const answer = app.progress?.unit === "sentence" ? { spans: row.predicted } : { class: row.predicted };
  await app.saving(async () => app.update((await act({ do: "label", rows: [row.row], ...answer })).progress));
  announce(`${named(row.row)} saved as ${row.shown_prediction}.`);
  await drawCheck(open);
}
