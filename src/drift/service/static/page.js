"use strict";

const part = (id) => document.getElementById(id);

async function describe() {
  const [about, health] = await Promise.all(["openapi.json", "health"].map((path) => fetch(path).then((r) => r.json())));
  const request = about.paths["/predict"].post.requestBody.content["application/json"].schema;
  part("title").textContent = about.info.title;
  part("engine").textContent = `DRIFT ${about.info.version}, computed by ${health.engine}`;
  part("request").value = JSON.stringify(request.example, null, 1);
}

function cell(row, text) {
  const td = document.createElement("td");
  td.textContent = text;
  row.append(td);
}

function percent(share) {
  return share === undefined ? "" : `${(100 * share).toFixed(1)} %`;
}

function show(predictions) {
  const body = part("table").tBodies[0];
  body.replaceChildren();
  predictions.forEach((each, place) => {
    const entities = each.entities || [{ label: each.label, confidence: each.confidence }];
    for (const found of entities) {
      const row = document.createElement("tr");
      cell(row, String(place + 1));
      cell(row, [found.text, found.label ?? "(not sure enough)"].filter(Boolean).join(": "));
      cell(row, percent(found.confidence));
      body.append(row);
    }
  });
  part("table").hidden = false;
}

part("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const headers = { "content-type": "application/json" };
  try {
    const reply = await fetch("predict", { method: "POST", headers, body: part("request").value });
    const text = await reply.text();
    if (!reply.ok) throw new Error(text.startsWith("{") ? JSON.parse(text).error : text);
    const answer = JSON.parse(text);
    part("answer").textContent = JSON.stringify(answer, null, 1);
    show(answer.predictions);
    part("error").hidden = true;
  } catch (error) {
    part("error").textContent = error.message;
    part("error").hidden = false;
  }
});

describe();
