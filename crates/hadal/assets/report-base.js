"use strict";
// Helpers. Everything of the program is set as text, never as markup.
const report = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function put(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") node.style.cssText = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(9)) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  put(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const fill = (id, ...children) => {
  const node = byId(id);
  node.replaceChildren();
  return put(node, {}, children);
};

const number = (n) => Number(n).toLocaleString("en-US");
const percent = (r) => (r * 100).toFixed(1) + " %";
const micro = (us) => (us >= 1000 ? (us / 1000).toFixed(3) + " ms" : us.toFixed(3) + " µs");
const counted = (n, what) => number(n) + " " + what + (n === 1 ? "" : "s");
function size(bytes) {
  if (bytes >= 1 << 20) return +(bytes / (1 << 20)).toFixed(2) + " MiB";
  return bytes >= 1024 ? +(bytes / 1024).toFixed(2) + " KiB" : bytes + " bytes";
}
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const clamp = (v, lo, hi) => Math.min(Math.max(v, lo), hi);

// Round steps for an axis of about `count` ticks.
function ticks(from, to, count) {
  const raw = Math.max((to - from) / Math.max(count, 1), 1e-9);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max([1, 2, 5, 10].find((f) => f * power >= raw) * power, 1);
  const out = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return out;
}

// `text` cut to what fits in `width` pixels of small text.
function fit(text, width, each) {
  const most = Math.floor(width / each);
  if (most < 3) return "";
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}

const legend = (id, rows) =>
  fill(id, rows.map(([name, style, text]) => el("li", {}, el("i", name ? { class: name } : { style }), text)));

function table(heads, rows, attributes) {
  const cls = (h) => (h.startsWith("#") ? "n" : null);
  return el(
    "table",
    attributes,
    el("thead", {}, el("tr", {}, heads.map((h) => el("th", { class: cls(h), scope: "col" }, h.replace(/^#/, ""))))),
    el("tbody", {}, rows),
  );
}

// Drawings, each called again when its width or the colours change.
const drawings = new Map();
function draw(id, f) {
  const node = byId(id);
  drawings.set(node, f);
  if (node.clientWidth) f(node.clientWidth);
}
const sizes = new ResizeObserver((entries) => {
  for (const e of entries) {
    const f = drawings.get(e.target);
    const width = Math.floor(e.contentRect.width);
    if (f && width && e.target.dataset.width !== String(width)) {
      e.target.dataset.width = String(width);
      f(width);
    }
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [node, f] of drawings) f(node.clientWidth);
});
