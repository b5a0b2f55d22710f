// What is the same for every core, then the core in view.
function summaryOf(core) {
  const figures = [
    ["Estimated cycles", number(core.cycles), "", "first"],
    ["Estimated time", ...micro(core.microseconds).split(" ")],
    ["PE utilization", (core.utilization * 100).toFixed(1), "%"],
    ["Model FLOPs (MFU)", (core.mfu * 100).toFixed(1), "%"],
    ["Hardware FLOPs (HFU)", (core.hfu * 100).toFixed(1), "%"],
    ["Clock", (core.clock_hz / 1e9).toFixed(1), "GHz"],
  ];
  fill("figures", figures.map(([label, value, unit, cls]) =>
    el("div", { class: "figure " + (cls || "") }, el("b", {}, value, unit ? el("small", {}, unit) : null), el("span", {}, label))));
}

function outputRow(o) {
  const range = o.min === null ? "no number" : `${o.min} to ${o.max}`;
  const more = [o.nan ? `${number(o.nan)} NaN` : "", o.unwritten ? `${counted(o.unwritten, "byte")} never written` : ""].filter(Boolean);
  return el("tr", {},
    el("td", { class: "name" }, o.name),
    el("td", {}, o.dtype),
    el("td", {}, `[${o.shape.join(", ")}]`),
    el("td", {}, o.space + (report.cores.length > 1 ? `, core ${o.core}` : "")),
    el("td", { class: "wide" }, [range, ...more].join("; ")));
}

function common() {
  const r = report;
  byId("title").textContent = r.program;
  byId("subtitle").textContent = `${r.target}, ${counted(r.cores.length, "core")}`;
  fill("facts", r.facts.map(([label, text]) => [el("dt", {}, label), el("dd", {}, text)]));
  fill("notes", r.notes.map((n) => el("p", { class: "note" }, el("b", {}, n.kind === "view" ? "note" : n.kind), n.text)));
  if (r.outputs.length) {
    const heading = r.outputs[0].declared ? "Outputs" : "Locations written";
    fill("outputs", el("h3", {}, heading), table(["Name", "Type", "Shape", "Memory", "Values"], r.outputs.map(outputRow), { class: "stack" }));
  }
  fill("rules", r.rules.map((rule) => el("li", {}, rule)));
  const row = ([name, formula, sure, source]) =>
    el("tr", {}, el("td", {}, el("strong", {}, name)), el("td", { class: "wide" }, formula), el("td", {}, el("span", { class: "conf " + sure }, sure)), el("td", { class: "wide" }, source));
  fill("formulas", table(["What", "Formula", "Confidence", "Source"], r.formulas.map(row), { class: "stack" }));
  byId("foot").textContent = `Made by hadal ${r.version} from ${r.file}. This page is whole: it loads nothing.`;
}

function show(index) {
  const core = report.cores[index];
  if (!core) return;
  for (const [i, b] of [...byId("cores").children].entries()) b.setAttribute("aria-pressed", String(i === index));
  memory.marks = [];
  summaryOf(core);
  timelineOf(core);
  utilizationOf(core);
  memoryOf(core);
  bundlesOf(core);
  for (const node of drawings.keys()) sizes.observe(node);
}

common();
if (report.cores.length > 1) {
  byId("cores").hidden = false;
  fill("cores", report.cores.map((_, i) => el("button", { type: "button", "aria-pressed": "false", onclick: () => show(i) }, `Core ${i}`)));
}
timelineInput();
byId("mem-at").addEventListener("input", (e) => {
  memory.at = Number(e.target.value);
  memoryNow();
});
byId("bn-list").classList.add("hide-reserved");
byId("bn-reserved").addEventListener("change", (e) => byId("bn-list").classList.toggle("hide-reserved", !e.target.checked));
show(0);
document.documentElement.dataset.ready = "yes";
