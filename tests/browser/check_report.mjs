// Opens pages of `hadal run --report` in headless Chromium and checks what a reader would see.
//
//   node tests/browser/check_report.mjs [--shots FOLDER] PAGE.html...
//
// The browser is $CHROMIUM, or the first of chromium, chromium-browser, google-chrome on the path. Fails on a
// message or exception on the console, any request beside the page itself, a section that is missing or empty, a
// timeline or map with nothing drawn, and a page wider than its window, at a desktop's and at a phone's width.
// Needs nothing but Node: the browser is spoken to through two pipes.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const args = process.argv.slice(2);
let shots = null;
if (args[0] === "--shots") [, shots] = args.splice(0, 2);
if (!args.length) {
  console.error("usage: check_report.mjs [--shots FOLDER] PAGE.html...");
  process.exit(2);
}

function browser() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const names = ["chromium", "chromium-browser", "google-chrome"];
  return names.find((n) => spawnSync(n, ["--version"], { stdio: "ignore" }).status === 0);
}
const binary = browser();
if (!binary) {
  console.error("no browser: set CHROMIUM, or install chromium");
  process.exit(2);
}

const profile = mkdtempSync(join(tmpdir(), "hadal-report-"));
const child = spawn(
  binary,
  ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe",
    `--user-data-dir=${profile}`, "about:blank"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
const timer = setTimeout(() => finish(["the browser did not answer within two minutes"]), 120_000);

let nextId = 1;
const waiting = new Map();
const listeners = [];
let rest = "";
child.stdio[4].setEncoding("utf8");
child.stdio[4].on("data", (text) => {
  const parts = (rest + text).split("\0");
  rest = parts.pop();
  for (const part of parts) {
    const m = JSON.parse(part);
    const wait = waiting.get(m.id);
    if (wait) {
      waiting.delete(m.id);
      if (m.error) wait.reject(new Error(m.error.message));
      else wait.resolve(m.result);
    } else if (m.method) listeners.forEach((f) => f(m));
  }
});
child.on("exit", () => waiting.forEach((w) => w.reject(new Error("the browser ended"))));
child.on("error", (e) => finish([`cannot start ${binary}: ${e.message}`]));

function send(method, params = {}, sessionId) {
  const id = nextId++;
  child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

// Runs in the page: what is wrong with it. Pixels are counted, since a canvas that is there may be blank.
function look() {
  const wrong = [];
  const need = (ok, text) => ok || wrong.push(text);
  const one = (q) => document.querySelector(q);
  need(document.documentElement.dataset.ready === "yes", "the script did not reach its end");
  for (const id of ["summary", "timeline", "utilization", "memory", "psum", "sbuf", "bundles", "basis"]) {
    const s = document.getElementById(id);
    need(s, `there is no section ${id}`);
    need(!s || !s.checkVisibility() || s.innerText.trim().length > 20, `section ${id} is empty`);
  }
  need(document.querySelectorAll("#figures .figure").length >= 5, "the summary lacks its figures");
  need(document.querySelectorAll("#facts dt").length >= 3, "the summary lacks its facts");
  need(document.querySelectorAll("#rules li").length > 0, "no rule is listed");
  need(document.querySelectorAll("#formulas tbody tr").length > 0, "no formula is listed");
  const data = JSON.parse(one("#data").textContent);
  const core = data.cores[0];
  const canvas = one("#tl-canvas");
  need(canvas && Number(canvas.dataset.drawn) > 0, "the timeline has no bar");
  if (canvas && canvas.width) {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const counts = new Map();
    for (let i = 0; i < pixels.length; i += 4) {
      const key = (pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2];
      counts.set(key, (counts.get(key) || 0) + 1);
    }
    const background = (pixels[0] << 16) | (pixels[1] << 8) | pixels[2];
    const inked = [...counts].reduce((n, [key, count]) => n + (key === background ? 0 : count), 0);
    need(inked > 500, `the timeline is blank: ${inked} pixels`);
  } else need(false, "the timeline has no size");
  const curve = one("#ut-box path.curve");
  need(curve && curve.getTotalLength() > 50, "the utilization chart has no curve");
  if (core.memory) {
    for (const map of ["psum-space", "psum-time", "sbuf-space", "sbuf-time"]) {
      const space = core.memory[map.split("-")[0]];
      const found = document.querySelectorAll(`#${map} rect.loc`).length;
      const wanted = map.endsWith("time") ? space.locations.filter((l) => l.life).length : space.locations.length;
      need(found === wanted, `${map} draws ${found} of ${wanted} locations`);
      need(one(`#${map} svg`), `${map} is missing`);
    }
    need(document.querySelectorAll("rect.loc:not(.off)").length > 0, "no location is alive at the instruction");
  } else need(one("#mem-none").innerText.length > 20, "it is not said why there is no map");
  const bundles = document.querySelectorAll("#bn-list details.bundle");
  need(bundles.length === core.bundles.length, `${bundles.length} of ${core.bundles.length} bundles`);
  bundles.forEach((b) => { b.open = true; });
  const wide = document.documentElement.scrollWidth;
  need(wide <= window.innerWidth, `the page is ${wide} pixels wide in a window of ${window.innerWidth}`);
  return wrong;
}

// Runs in the page after a moment: opened bundles, keys, the slider.
function use() {
  const wrong = [];
  const need = (ok, text) => ok || wrong.push(text);
  const bundles = document.querySelectorAll("#bn-list details.bundle").length;
  const cells = document.querySelectorAll("#bn-list .cell").length;
  need(cells === 64 * bundles, `${cells} byte cells in ${bundles} bundles`);
  need(document.querySelectorAll("#bn-list .fields tbody tr").length > 10 * bundles, "fields are missing");
  const wide = document.documentElement.scrollWidth;
  need(wide <= window.innerWidth, `with bundles open the page is ${wide} pixels wide in a window of ${window.innerWidth}`);
  const canvas = document.getElementById("tl-canvas");
  const key = (k) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true, cancelable: true }));
  key("ArrowRight");
  const first = document.getElementById("tl-detail").innerText;
  need(/Cycles/.test(first), "the arrow keys select nothing");
  key("ArrowDown");
  key("ArrowRight");
  need(document.getElementById("tl-detail").innerText !== first || !document.querySelector("#tl-canvas"), "the arrow keys do not move");
  key("+");
  need(Number(canvas.dataset.drawn) > 0, "nothing is drawn after zooming in");
  key("0");
  const slider = document.getElementById("mem-at");
  if (slider.checkVisibility() && Number(slider.max) > 0) {
    const states = new Set();
    for (const at of [0, slider.max]) {
      slider.value = at;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      states.add(document.getElementById("mem-now").innerText);
    }
    need(states.size === 2, "the slider of the maps does nothing");
  }
  return wrong;
}

async function check(page, { width, height, scheme }) {
  const wrong = [];
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const tab = (method, params) => send(method, params, sessionId);
  const url = pathToFileURL(resolve(page)).href;
  const loaded = new Promise((done) => {
    listeners.push((m) => {
      if (m.sessionId !== sessionId) return;
      const p = m.params;
      if (m.method === "Page.loadEventFired") done();
      if (m.method === "Runtime.consoleAPICalled") wrong.push(`console: ${p.args.map((a) => a.value ?? a.description).join(" ")}`);
      if (m.method === "Runtime.exceptionThrown") wrong.push(`exception: ${p.exceptionDetails.exception?.description ?? p.exceptionDetails.text}`);
      if (m.method === "Log.entryAdded") wrong.push(`log: ${p.entry.text}`);
      const asked = m.method === "Network.requestWillBeSent" ? p.request.url : "";
      if (asked && asked !== url && !asked.startsWith("data:")) wrong.push(`request: ${asked}`);
    });
  });
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await tab(`${domain}.enable`);
  await tab("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
  await tab("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  const gone = await tab("Page.navigate", { url });
  if (gone.errorText) return [`cannot open: ${gone.errorText}`];
  await loaded;
  const evaluate = async (f) => {
    // Two frames: sizes are observed after the first layout.
    const code = `new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))).then(${f})`;
    const answer = await tab("Runtime.evaluate", { expression: code, awaitPromise: true, returnByValue: true });
    if (answer.exceptionDetails) return [`check failed: ${answer.exceptionDetails.exception?.description}`];
    return answer.result.value;
  };
  if (shots) {
    await evaluate(() => []);
    const { data } = await tab("Page.captureScreenshot", { captureBeyondViewport: true });
    const name = `${basename(page, ".html")}-${width}-${scheme}.png`;
    writeFileSync(join(shots, name), Buffer.from(data, "base64"));
  }
  wrong.push(...(await evaluate(look)), ...(await evaluate(use)));
  await send("Target.closeTarget", { targetId });
  return wrong.map((w) => `${page} at ${width} pixels, ${scheme}: ${w}`);
}

function finish(wrong) {
  clearTimeout(timer);
  wrong.forEach((w) => console.error(w));
  child.kill();
  child.once("exit", leave);
  setTimeout(leave, 2000);
  function leave() {
    try {
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    } catch {
      // The browser may still be writing to it; it lies in the temporary folder.
    }
    if (!wrong.length) console.log(`${args.length === 1 ? "1 page is" : `${args.length} pages are`} as they should be`);
    process.exit(wrong.length ? 1 : 0);
  }
}

try {
  const wrong = [];
  for (const page of args) {
    wrong.push(...(await check(page, { width: 1280, height: 900, scheme: "light" })));
    wrong.push(...(await check(page, { width: 390, height: 844, scheme: "dark" })));
    if (shots) {
      await check(page, { width: 1280, height: 900, scheme: "dark" });
      await check(page, { width: 390, height: 844, scheme: "light" });
    }
  }
  finish(wrong);
} catch (e) {
  finish([String(e.stack ?? e)]);
}
