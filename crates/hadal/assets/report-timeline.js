// The timeline: a canvas with one row for each lane.
const SPAN = { lane: 0, start: 1, end: 2, cycles: 3, first: 4, last: 5, steps: 6, macs: 7, use: 8, name: 9, place: 10, kind: 11 };
const timeline = { top: 26, label: 17, bar: 26, gap: 9, view: [0, 1], pick: null, lanes: [], core: null };

function timelineOf(core) {
  const t = timeline;
  t.core = core;
  t.lanes = core.lanes.map((l, i) => ({ ...l, spans: core.spans.filter((s) => s[SPAN.lane] === i) }));
  t.end = Math.max(core.cycles, 1);
  t.view = [0, t.end];
  t.pick = null;
  byId("tl-canvas").setAttribute(
    "aria-label",
    `Timeline of ${counted(core.cycles, "cycle")} with ${counted(core.spans.length, "bar")} in ${counted(t.lanes.length, "lane")}`,
  );
  legend("tl-legend", [
    ["", "background:var(--accent)", "matmul"],
    ["", "background:var(--accent-soft);box-shadow:inset 0 0 0 1px var(--accent)", "transpose"],
    ["", "background:var(--load)", "load, hidden by the matmul before it"],
    ["", "background:var(--load-shown)", "load that the array waits for"],
  ]);
  draw("tl-box", timelineDraw);
  timelineDetail();
}

function timelineDraw(width) {
  const t = timeline, canvas = byId("tl-canvas"), ratio = window.devicePixelRatio || 1;
  const row = t.label + t.bar + t.gap;
  const height = t.top + Math.max(t.lanes.length, 1) * row + 12;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  t.width = width;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  const ink = { paper: colour("raised"), ink: colour("ink"), soft: colour("soft"), line: colour("line"), accent: colour("accent"), tint: colour("accent-soft"), on: colour("on-accent"), load: colour("load"), shown: colour("load-shown") };
  c.fillStyle = ink.paper;
  c.fillRect(0, 0, width, height);
  const [from, to] = t.view;
  const x = (cycle) => ((cycle - from) / (to - from)) * width;
  c.font = "11px " + colour("sans");
  c.textBaseline = "middle";
  for (const tick of ticks(from, to, width / 110)) {
    const at = Math.round(x(tick)) + 0.5;
    c.fillStyle = ink.line;
    c.fillRect(at - 0.5, t.top - 6, 1, height - t.top + 6 - 10);
    const text = number(tick) + (tick === 0 ? " cycles" : "");
    c.fillStyle = ink.soft;
    c.textAlign = at < 4 ? "left" : at > width - 30 ? "right" : "center";
    c.fillText(text, clamp(at, 6, width - 6), 11);
  }
  let drawn = 0;
  t.lanes.forEach((lane, i) => {
    const y = t.top + i * row + t.label;
    c.textAlign = "left";
    c.fillStyle = ink.soft;
    c.fillText(lane.name, 6, y - 8, width - 12);
    let filled = -1;
    for (let k = firstVisible(lane.spans, from); k < lane.spans.length; k += 1) {
      const s = lane.spans[k];
      if (s[SPAN.start] > to) break;
      const left = Math.max(x(s[SPAN.start]), -2), right = Math.min(x(s[SPAN.end]), width + 2);
      // What falls into a pixel that is filled already adds nothing.
      if (right - left < 1 && Math.floor(left) === filled) continue;
      filled = Math.floor(left);
      timelineBar(c, s, lane.loads, left, Math.max(right - left, 1), y, x, ink);
      drawn += 1;
    }
  });
  if (!t.lanes.length) {
    c.textAlign = "left";
    c.fillStyle = ink.soft;
    c.fillText("No bundle of this program takes the array's time.", 12, t.top + 20);
  }
  // The part of the program in view.
  c.fillStyle = ink.line;
  c.fillRect(0, height - 4, width, 4);
  c.fillStyle = ink.accent;
  c.fillRect((from / t.end) * width, height - 4, Math.max(((to - from) / t.end) * width, 3), 4);
  canvas.dataset.drawn = String(drawn);
}

function firstVisible(spans, from) {
  let low = 0, high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle][SPAN.end] < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function timelineBar(c, s, loads, left, width, y, x, ink) {
  const { bar } = timeline;
  const space = width > 3 ? 0.5 : 0;
  const box = (from, wide, color, part) => {
    c.fillStyle = color;
    c.fillRect(from + space, y + bar * (1 - part), Math.max(wide - 2 * space, 0.5), bar * part);
  };
  let light = true;
  if (loads) {
    box(left, width, ink.load, 1);
    if (s[SPAN.cycles] > 0) {
      const from = s[SPAN.steps] > 1 ? left : Math.max(x(s[SPAN.end] - s[SPAN.cycles]), left);
      box(from, left + width - from, ink.shown, s[SPAN.steps] > 1 ? 0.3 : 1);
      light = s[SPAN.cycles] < s[SPAN.end] - s[SPAN.start];
    }
  } else {
    const transpose = s[SPAN.kind] === "transpose";
    box(left, width, ink.tint, 1);
    box(left, width, transpose ? ink.tint : ink.accent, clamp(s[SPAN.use], 0.08, 1));
    if (transpose) {
      c.strokeStyle = ink.accent;
      c.strokeRect(left + 1, y + 0.5, Math.max(width - 2, 1), bar - 1);
    }
    light = transpose || s[SPAN.use] < 0.6;
  }
  if (timeline.pick === s) {
    c.strokeStyle = ink.ink;
    c.lineWidth = 2;
    c.strokeRect(left, y - 1, Math.max(width, 2), bar + 2);
    c.lineWidth = 1;
  }
  const seen = Math.max(left, 0), wide = left + width - seen;
  const text = fit(spanName(s), wide - 12, 6.2);
  if (text) {
    c.textAlign = "left";
    c.fillStyle = light ? ink.ink : loads ? ink.paper : ink.on;
    c.fillText(text, seen + 6, y + bar / 2 + 0.5);
  }
}

function spanName(s) {
  return s[SPAN.steps] > 1 ? counted(s[SPAN.steps], s[SPAN.kind]) : timeline.core.names[s[SPAN.name]];
}

function spanFacts(s) {
  const core = timeline.core, us = 1e6 / core.clock_hz;
  const facts = [
    ["Kind", s[SPAN.kind]],
    [s[SPAN.steps] > 1 ? "Bundles" : "Bundle", s[SPAN.steps] > 1 ? `${s[SPAN.first]} to ${s[SPAN.last]}` : s[SPAN.first]],
    ["Cycles", `${number(s[SPAN.start])} to ${number(s[SPAN.end])}`],
    ["Time", micro((s[SPAN.end] - s[SPAN.start]) * us)],
    ["Adds", counted(s[SPAN.cycles], "cycle")],
  ];
  if (s[SPAN.macs]) facts.push(["Multiply-adds", number(s[SPAN.macs])], ["Array used", percent(s[SPAN.use])]);
  const place = core.names[s[SPAN.place]];
  if (place) facts.push(["Source", place]);
  return facts;
}

function timelineDetail() {
  const s = timeline.pick;
  if (!s) {
    fill("tl-detail", el("div", { style: "color:var(--soft)" }, "Click a bar for its details, or step through them with the keys."));
    return;
  }
  const facts = [[timeline.lanes[s[SPAN.lane]].name, spanName(s)], ...spanFacts(s)];
  fill("tl-detail", facts.map(([label, text]) => el("div", {}, el("span", {}, label), String(text))));
}

function timelineView(from, to) {
  const t = timeline, length = clamp(to - from, Math.min(8, t.end), t.end);
  const start = clamp(from, 0, t.end - length);
  t.view = [start, start + length];
  timelineDraw(t.width);
}

function timelineZoom(factor, at) {
  // Without a pointer: about what is selected and in view, else about the middle.
  const [from, to] = timeline.view, s = timeline.pick;
  let middle = at ?? (from + to) / 2;
  if (at === undefined && s) {
    const picked = (s[SPAN.start] + s[SPAN.end]) / 2;
    if (picked >= from && picked <= to) middle = picked;
  }
  timelineView(middle - (middle - from) * factor, middle + (to - middle) * factor);
}

function timelinePick(s) {
  const t = timeline;
  t.pick = s;
  if (s) {
    const [from, to] = t.view;
    if (s[SPAN.end] < from || s[SPAN.start] > to) {
      const middle = (s[SPAN.start] + s[SPAN.end]) / 2;
      timelineView(middle - (to - from) / 2, middle + (to - from) / 2);
    }
  }
  timelineDraw(t.width);
  timelineDetail();
}

// The next span of the lane (or of all, by time), or the one nearest in another lane.
function timelineStep(along, across) {
  const t = timeline;
  if (!t.lanes.length) return;
  if (!t.pick) return timelinePick(t.lanes[0].spans[0]);
  const lane = clamp(t.pick[SPAN.lane] + across, 0, t.lanes.length - 1);
  const spans = t.lanes[lane].spans;
  const at = across ? firstVisible(spans, t.pick[SPAN.start] + 1) : spans.indexOf(t.pick) + along;
  timelinePick(spans[clamp(at, 0, spans.length - 1)]);
}

function timelineAt(event) {
  const t = timeline, box = byId("tl-canvas").getBoundingClientRect();
  const px = event.clientX - box.left, py = event.clientY - box.top;
  const row = t.label + t.bar + t.gap, lane = t.lanes[Math.floor((py - t.top) / row)];
  const cycle = t.view[0] + (px / box.width) * (t.view[1] - t.view[0]);
  if (!lane || py < t.top) return { px, py, cycle, span: null };
  const slack = (2 / box.width) * (t.view[1] - t.view[0]);
  const s = lane.spans[firstVisible(lane.spans, cycle - slack)];
  return { px, py, cycle, span: s && s[SPAN.start] <= cycle + slack ? s : null };
}

function timelineTip(at) {
  const tip = byId("tl-tip");
  tip.hidden = !at || !at.span;
  if (tip.hidden) return;
  fill("tl-tip", el("b", {}, spanName(at.span)), spanFacts(at.span).map(([l, v]) => el("div", {}, `${l}: ${v}`)));
  const box = byId("tl-box");
  tip.style.left = clamp(at.px + 14, 4, Math.max(box.clientWidth - tip.offsetWidth - 4, 4)) + "px";
  tip.style.top = clamp(at.py + 14, 0, Math.max(box.clientHeight - tip.offsetHeight - 4, 0)) + "px";
}

function timelineInput() {
  const t = timeline, canvas = byId("tl-canvas"), down = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (e) => {
    down.set(e.pointerId, e.clientX);
    moved = 0;
    canvas.setPointerCapture(e.pointerId);
    timelineTip(null);
  });
  canvas.addEventListener("pointermove", (e) => {
    if (!down.has(e.pointerId)) return timelineTip(e.pointerType === "touch" ? null : timelineAt(e));
    const before = [...down.values()], spread = () => Math.abs([...down.values()].reduce((a, b) => a - b));
    const old = down.size === 2 ? spread() : 0;
    const step = e.clientX - down.get(e.pointerId);
    down.set(e.pointerId, e.clientX);
    moved += Math.abs(step);
    if (down.size === 2 && old > 0) {
      timelineZoom(clamp(old / Math.max(spread(), 1), 0.5, 2), timelineAt(e).cycle);
    } else if (before.length === 1 && moved > 3) {
      canvas.classList.add("drag");
      const shift = (step / t.width) * (t.view[1] - t.view[0]);
      timelineView(t.view[0] - shift, t.view[1] - shift);
    }
  });
  const up = (e) => {
    if (down.delete(e.pointerId) && moved <= 3 && e.type === "pointerup") timelinePick(timelineAt(e).span);
    canvas.classList.remove("drag");
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => timelineTip(null));
  canvas.addEventListener("dblclick", (e) => timelineZoom(0.5, timelineAt(e).cycle));
  canvas.addEventListener("wheel", (e) => {
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      timelineZoom(Math.exp(clamp(e.deltaY, -100, 100) / 250), timelineAt(e).cycle);
    } else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      const shift = (e.deltaX / t.width) * (t.view[1] - t.view[0]);
      timelineView(t.view[0] + shift, t.view[1] + shift);
    }
  }, { passive: false });
  const keys = {
    ArrowRight: () => timelineStep(1, 0), ArrowLeft: () => timelineStep(-1, 0),
    ArrowDown: () => timelineStep(0, 1), ArrowUp: () => timelineStep(0, -1),
    "+": () => timelineZoom(0.6), "=": () => timelineZoom(0.6), "-": () => timelineZoom(1 / 0.6),
    0: () => timelineView(0, t.end),
  };
  canvas.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  byId("tl-prev").addEventListener("click", keys.ArrowLeft);
  byId("tl-next").addEventListener("click", keys.ArrowRight);
  byId("tl-in").addEventListener("click", keys["+"]);
  byId("tl-out").addEventListener("click", keys["-"]);
  byId("tl-fit").addEventListener("click", keys[0]);
}
