// The first bundles: 64 cells each, coloured by the part of the bundle, and the fields they hold.
const FIELD = { offset: 0, width: 1, bit: 2, key: 3, name: 4, value: 5, meaning: 6, confidence: 7, decision: 8, part: 9 };
const hex = (n) => n.toString(16).padStart(2, "0");

function bundlesOf(core) {
  const n = core.bundles.length;
  byId("bn-text").textContent = n
    ? `${n < core.bundle_count ? `The first ${n} of ${counted(core.bundle_count, "bundle")}` : counted(n, "bundle")}, 64 bytes each. Open one for its bytes; offsets are hexadecimal.`
    : "The program has no bundles.";
  legend("bn-legend", [
    ["p-header", "", "header"], ["p-operand", "", "operand"], ["p-result", "", "result"],
    ["p-setting", "", "types, modes, groups"], ["p-reserved", "", "reserved"],
  ]);
  fill("bn-list", core.bundles.map((b, i) => bundle(b, i)));
}

// The class of each byte, and the fields that lie in it. Neighbours of one part differ in shade.
function byteMap(b) {
  const cells = Array.from({ length: 64 }, () => ({ part: "p-reserved", fields: [] }));
  let shade = false, last = "";
  b.fields.forEach((f, i) => {
    const part = f[FIELD.part];
    shade = part === last && !shade;
    last = part;
    for (let k = f[FIELD.offset]; k < f[FIELD.offset] + f[FIELD.width] && k < 64; k += 1) {
      if (!cells[k].fields.length || f[FIELD.bit] === null) cells[k].part = `p-${part}${shade ? " alt" : ""}`;
      cells[k].fields.push(i);
    }
  });
  return cells;
}

function bundle(b, index) {
  const cells = byteMap(b);
  const node = el("details", { class: "bundle" },
    el("summary", {},
      el("span", { class: "num" }, index),
      el("span", { class: "what" }, b.mnemonic),
      el("span", { class: "from" }, [b.instruction, b.source].filter(Boolean).join("  ")),
      el("span", { class: "strip", "aria-hidden": true }, cells.map((c) => el("i", { class: c.part })))));
  // The inside is made when it is first opened.
  node.addEventListener("toggle", () => {
    if (node.open && node.children.length === 1) node.append(bundleInside(b, cells));
  });
  if (index === 0) node.open = true;
  return node;
}

function bundleInside(b, cells) {
  const boxes = [], rows = [];
  const light = (fields) => {
    rows.forEach((r, i) => r.classList.toggle("on", fields.includes(i)));
    boxes.forEach((c, i) => c.classList.toggle("on", cells[i].fields.some((f) => fields.includes(f))));
  };
  const grid = [el("span", {}), [...Array(16).keys()].map((i) => el("span", { class: "col" }, i.toString(16)))];
  cells.forEach((c, i) => {
    if (i % 16 === 0) grid.push(el("span", {}, hex(i)));
    const byte = b.hex.slice(2 * i, 2 * i + 2);
    const said = c.fields.map((f) => `${b.fields[f][FIELD.key]}: ${b.fields[f][FIELD.meaning]}`).join("\n");
    boxes.push(el("div", { class: `cell ${c.part}${byte === "00" ? " zero" : ""}`, title: said, onpointerenter: () => light(c.fields) }, byte));
    grid.push(boxes[i]);
  });
  b.fields.forEach((f, i) => rows.push(fieldRow(f, cells[f[FIELD.offset]], () => light([i]))));
  return el("div", { class: "open", onpointerleave: () => light([]) },
    el("p", { class: "asm" }, b.text),
    el("div", { class: "bytes" }, grid),
    el("div", { class: "fields" }, table(["Bytes", "Field", "Value", "Meaning", "Confidence"], rows, { class: "stack" })));
}

function fieldRow(f, cell, onEnter) {
  const first = hex(f[FIELD.offset]), last = hex(f[FIELD.offset] + f[FIELD.width] - 1);
  const place = f[FIELD.bit] !== null ? `${first} bit ${f[FIELD.bit]}` : f[FIELD.width] === 1 ? first : `${first} to ${last}`;
  const sure = f[FIELD.confidence];
  return el("tr", { class: f[FIELD.part] === "reserved" ? "reserved" : null, onpointerenter: onEnter },
    el("td", {}, el("i", { class: "sw " + cell.part }), el("span", { class: "code" }, place)),
    el("td", { class: "name", title: f[FIELD.name] }, f[FIELD.key]),
    el("td", { class: "code" }, f[FIELD.value]),
    el("td", { class: "wide" }, f[FIELD.meaning]),
    el("td", {}, el("span", { class: "conf " + sure }, sure), f[FIELD.decision] ? ` ${f[FIELD.decision]}` : null));
}
