// The utilization chart and the memory maps.
function utilizationOf(core) {
  const list = core.over_time, end = Math.max(core.cycles, 1);
  const waiting = core.cycles ? core.load_cycles / core.cycles : 0;
  byId("ut-text").textContent = core.cycles
    ? `${percent(core.utilization)} of the array over the whole program; it waits for loads ${percent(waiting)} of the time.`
    : "The program takes no time of the array.";
  legend("ut-legend", [
    ["", "background:var(--accent)", "share of the array's cells that multiply"],
    ["", "background:none;border-top:2px dashed var(--soft);border-radius:0;height:0;vertical-align:4px;width:16px", "average"],
  ]);
  draw("ut-box", (width) => {
    const height = 190, left = 44, right = 12, top = 14, bottom = 28, wide = width - left - right, tall = height - top - bottom;
    const x = (c) => left + (c / end) * wide, y = (r) => top + (1 - clamp(r, 0, 1)) * tall;
    const line = list.map((s, i) => `${i ? "L" : "M"}${x(s[0]).toFixed(2)} ${y(s[2]).toFixed(2)}H${x(s[1]).toFixed(2)}`).join("");
    const grid = [0, 0.25, 0.5, 0.75, 1].map((r) => [
      svg("line", { x1: left, x2: left + wide, y1: y(r), y2: y(r), stroke: "var(--line)" }),
      r % 0.5 ? null : svg("text", { x: left - 8, y: y(r) + 4, "text-anchor": "end" }, r * 100 + " %"),
    ]);
    const axis = ticks(0, end, wide / 110).map((c) =>
      svg("text", { x: x(c), y: height - 8, "text-anchor": c === 0 ? "start" : x(c) > width - 40 ? "end" : "middle" }, number(c) + (c ? "" : " cycles")));
    const mean = svg("line", { x1: left, x2: left + wide, y1: y(core.utilization), y2: y(core.utilization), stroke: "var(--soft)", "stroke-dasharray": "4 4" });
    const cursor = svg("line", { y1: top, y2: top + tall, stroke: "var(--ink)", visibility: "hidden" });
    const said = svg("text", { y: top + 12, class: "label", visibility: "hidden" });
    const shape = list.length
      ? [svg("path", { d: line + `V${y(0)}H${x(list[0][0])}Z`, fill: "var(--accent-soft)" }), svg("path", { d: line, fill: "none", stroke: "var(--accent)", "stroke-width": 1.5, class: "curve" })]
      : [];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": byId("ut-text").textContent }, grid, shape, mean, axis, cursor, said);
    picture.addEventListener("pointermove", (e) => {
      const px = e.clientX - picture.getBoundingClientRect().left, c = clamp(((px - left) / wide) * end, 0, end - 1);
      const s = list.find((s) => c < s[1]);
      for (const n of [cursor, said]) n.setAttribute("visibility", s ? "visible" : "hidden");
      if (!s) return;
      const at = x(c), far = at > width / 2;
      cursor.setAttribute("x1", at);
      cursor.setAttribute("x2", at);
      said.setAttribute("x", far ? at - 6 : at + 6);
      said.setAttribute("text-anchor", far ? "end" : "start");
      said.textContent = `${percent(s[2])} in cycles ${number(s[0])} to ${number(s[1])}`;
    });
    picture.addEventListener("pointerleave", () => [cursor, said].forEach((n) => n.setAttribute("visibility", "hidden")));
    fill("ut-box", picture);
  });
}

const memory = { at: 0, all: null, marks: [] };

function memoryOf(core) {
  const m = core.memory;
  memory.all = m;
  byId("mem-all").hidden = !m;
  fill("mem-none", m ? null : el("p", { class: "fine" }, "Bare bundles name no locations, so there is nothing to map. Run the program they were lowered from to see its memory."));
  if (!m) return;
  const slider = byId("mem-at");
  slider.max = String(Math.max(m.instructions - 1, 0));
  memory.at = m.occupancy.length ? m.occupancy.reduce((a, b) => (b[1] > a[1] ? b : a))[0] : 0;
  slider.value = String(memory.at);
  const peak = m.occupancy.reduce((most, o) => Math.max(most, o[1]), 0), whole = m.sbuf.bytes * 128;
  byId("sbuf-text").textContent = `${size(m.sbuf.bytes)} in each of 128 partitions; ${counted(m.sbuf.count, "location")}; at most ${size(peak)} in use at once (${percent(peak / whole)}).`;
  const banks = m.occupancy.reduce((most, o) => Math.max(most, [...o[2].toString(2)].filter((b) => b === "1").length), 0);
  byId("psum-text").textContent = `${m.banks} banks of ${size(m.bank_bytes)} in each of 128 partitions; ${counted(m.psum.count, "location")}; at most ${counted(banks, "bank")} in use at once.`;
  for (const name of ["psum", "sbuf"]) {
    draw(`${name}-space`, (width) => mapSpace(name, width));
    draw(`${name}-time`, (width) => mapTime(name, width));
    fill(`${name}-table`, m[name].locations.length ? memoryTable(m[name]) : null);
  }
  fill("mem-pick", "Point at a location for its place and life; dashed ones are not alive at the instruction.");
  memoryNow();
}

function memoryTable(space) {
  const rows = space.locations.map((l) =>
    el("tr", {},
      el("td", { class: "name" }, l.name),
      el("td", { class: "n" }, `${l.partitions[0]} to ${l.partitions[1] - 1}`),
      el("td", { class: "n" }, `${number(l.bytes[0])} to ${number(l.bytes[1] - 1)}`),
      el("td", {}, life(l))));
  return el("details", { class: "more" }, el("summary", {}, "As a table"),
    el("div", { class: "scroll" }, table(["Location", "#Partitions", "#Bytes", "Lives"], rows)));
}

const life = (l) => {
  if (!l.life) return "never used";
  const [a, b, first, last] = l.life;
  return a === b ? `at ${a} (${first})` : `${a} to ${b} (${first} to ${last})`;
};
const lives = (l) => l.life && l.life[0] <= memory.at && memory.at <= l.life[1];

function memoryNow() {
  const m = memory.all, found = m.occupancy.filter((o) => o[0] <= memory.at).length - 1;
  const exact = found >= 0 && m.occupancy[found][0] === memory.at;
  const name = exact ? m.names[found] : "";
  byId("mem-now").textContent = m.instructions ? `${memory.at} of ${m.instructions}${name ? ", " + name : ""}` : "no instructions";
  byId("mem-at").setAttribute("aria-valuetext", byId("mem-now").textContent);
  for (const { nodes, loc } of memory.marks) for (const node of nodes) node.classList.toggle("off", !lives(loc));
  for (const line of document.querySelectorAll(".now")) {
    const at = Number(line.dataset.left) + (memory.at + 0.5) * Number(line.dataset.each);
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
  }
}

function locationMark(l, index, name, box, fades) {
  const [x, y, w, h] = box;
  const say = () => {
    fill("mem-pick", el("b", {}, l.name), ` ${name.toUpperCase()}, partitions ${l.partitions[0]} to ${l.partitions[1] - 1}, bytes ${number(l.bytes[0])} to ${number(l.bytes[1] - 1)}, lives ${life(l)}`);
    for (const other of document.querySelectorAll(".loc.on")) other.classList.remove("on");
    for (const other of document.querySelectorAll(`.loc[data-of="${name}${index}"]`)) other.classList.add("on");
  };
  const node = svg("rect", {
    x: x.toFixed(2), y: y.toFixed(2), width: Math.max(w, 1.5).toFixed(2), height: Math.max(h, 1.5).toFixed(2),
    class: "loc", style: `fill:var(--t${index % 5})`, "data-of": name + index, tabindex: index < 64 ? 0 : null,
    role: "button", "aria-label": l.name, onpointerenter: say, onclick: say, onfocus: say,
  });
  node.append(svg("title", {}, l.name));
  const text = h >= 13 ? fit(l.name, w - 8, 6.4) : "";
  const nodes = [node];
  if (text) nodes.push(svg("text", { x: x + 5, y: y + Math.min(h / 2, 60) + 4, class: "label" }, text));
  if (fades) memory.marks.push({ nodes, loc: l });
  return nodes;
}

// Bytes along, partitions down.
function mapSpace(name, width) {
  const m = memory.all, s = m[name], left = 34, top = 8, bottom = 24, tall = 192, wide = width - left - 8;
  memory.marks = memory.marks.filter((k) => !k.nodes[0].dataset.of.startsWith(name));
  const used = s.locations.reduce((most, l) => Math.max(most, l.bytes[1]), 0);
  const end = name === "psum" ? s.bytes : Math.min(s.bytes, Math.max(used, 256));
  const x = (b) => left + (b / end) * wide, y = (p) => top + (p / 128) * tall;
  const marks = s.locations.map((l, i) =>
    locationMark(l, i, name, [x(l.bytes[0]), y(l.partitions[0]), x(l.bytes[1]) - x(l.bytes[0]), y(l.partitions[1]) - y(l.partitions[0])], true));
  const rows = [0, 32, 64, 96, 128].map((p) => [
    svg("line", { x1: left, x2: left + wide, y1: y(p), y2: y(p), stroke: "var(--line)" }),
    svg("text", { x: left - 6, y: y(p) + 4, "text-anchor": "end" }, p),
  ]);
  const axis = name === "psum"
    ? [...Array(m.banks).keys()].map((b) => [
        svg("line", { x1: x(b * m.bank_bytes), x2: x(b * m.bank_bytes), y1: top, y2: top + tall, stroke: "var(--line)" }),
        svg("text", { x: x((b + 0.5) * m.bank_bytes), y: top + tall + 16, "text-anchor": "middle" }, wide > 330 ? "bank " + b : b)])
    : byteTicks(end, wide / 80).map((b) => svg("text", { x: x(b), y: top + tall + 16, "text-anchor": b === 0 ? "start" : x(b) > width - 36 ? "end" : "middle" }, size(b)));
  const height = top + tall + bottom;
  fill(`${name}-space`, svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": `${name.toUpperCase()} map by partitions and bytes` }, rows, axis, marks));
  memoryNow();
}

function byteTicks(end, count) {
  let step = 64;
  while (end / step > Math.max(count, 2)) step *= 2;
  const out = [];
  for (let b = 0; b <= end; b += step) out.push(b);
  return out;
}

// Instructions along, bytes down; PSUM by banks.
function mapTime(name, width) {
  const m = memory.all, s = m[name], left = name === "psum" ? 48 : 58, top = 8, bottom = 24, tall = 192, wide = width - left - 8;
  const used = s.locations.reduce((most, l) => Math.max(most, l.bytes[1]), 0);
  const end = name === "psum" ? s.bytes : Math.min(s.bytes, Math.max(used, 256));
  const each = wide / Math.max(m.instructions, 1);
  const x = (i) => left + i * each, y = (b) => top + (b / end) * tall;
  const marks = s.locations.map((l, i) =>
    l.life ? locationMark(l, i, name, [x(l.life[0]), y(l.bytes[0]), (l.life[1] + 1 - l.life[0]) * each, y(l.bytes[1]) - y(l.bytes[0])], false) : null);
  const side = name === "psum"
    ? [...Array(m.banks).keys()].map((b) => [
        svg("line", { x1: left, x2: left + wide, y1: y(b * m.bank_bytes), y2: y(b * m.bank_bytes), stroke: "var(--line)" }),
        svg("text", { x: left - 6, y: y((b + 0.5) * m.bank_bytes) + 4, "text-anchor": "end" }, "bank " + b)])
    : byteTicks(end, 6).map((b) => [
        svg("line", { x1: left, x2: left + wide, y1: y(b), y2: y(b), stroke: "var(--line)" }),
        svg("text", { x: left - 6, y: clamp(y(b) + 4, 12, top + tall), "text-anchor": "end" }, size(b))]);
  const axis = ticks(0, Math.max(m.instructions - 1, 0), wide / 90).map((i) =>
    svg("text", { x: x(i + 0.5), y: top + tall + 16, "text-anchor": x(i) > width - 30 ? "end" : "middle" }, number(i)));
  const now = svg("line", { class: "now", y1: top, y2: top + tall, stroke: "var(--ink)", "stroke-width": 1.5, "data-left": left, "data-each": each, "pointer-events": "none" });
  const height = top + tall + bottom;
  fill(`${name}-time`, svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": `${name.toUpperCase()} over the program's instructions` }, side, axis, marks, now));
  memoryNow();
}
