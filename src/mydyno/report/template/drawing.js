// What all charts drawn by script share: numbers, packed data, shading, axes, keys.
const drawing = (() => {
  "use strict";
  const TOP = 32766, GAP = -1;
  const CLOCK = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600];
  const BINARY = Array.from({ length: 50 }, (_, i) => 2 ** i); // so that sizes get whole labels
  const DASHES = [[], [8, 3], [2, 2.5], [8, 3, 2, 3], [4, 3]];
  const byId = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // -- numbers as the rest of the page shows them

  const figures = (x) => (Math.abs(x) >= 100 ? x.toFixed(0) : String(Number(x.toPrecision(3))));
  function scaled(x, unit, steps) {
    const [factor, prefix] = steps.find(([f]) => Math.abs(x) >= f * 0.9995) || steps[steps.length - 1];
    return `${figures(x / factor)} ${prefix}${unit}`;
  }
  function quantity(x, unit) {
    if (unit === "cores") return `${Number(figures(Math.round(100 * x) / 100))} cores`;
    if (unit === "share") return `${figures(100 * x)} %`;
    if (x === 0) return unit.endsWith("/s") ? `0 ${unit}` : "0";
    if (unit === "s") return scaled(x, "", [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
    if (unit === "ratio" || unit === "") return figures(x);
    if (unit.startsWith("B")) return scaled(x, unit, [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [1024, "Ki"], [1, ""]]);
    return scaled(x, unit, [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]);
  }

  // -- data

  async function inflated(text) {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }
  async function codes(text) {
    const view = new DataView(await inflated(text));
    return Int16Array.from({ length: view.byteLength / 2 }, (_, i) => view.getInt16(2 * i, true));
  }
  function values(deltas, start, length, { log, low, high }) {
    const found = new Array(length);
    for (let i = 0, code = 0; i < length; i++) {
      code += deltas[start + i];
      const part = code / TOP;
      found[i] = code === GAP ? null : log ? low * (high / low) ** part : low + part * (high - low);
    }
    return found;
  }

  // -- what was not measured is shaded, what was is named

  function shade(u, chart) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    const at = (t) => Math.min(Math.max(u.valToPos(t, "x", true), bbox.left), bbox.left + bbox.width);
    const [first, last] = chart.warm;
    ctx.save();
    ctx.fillStyle = colour("--wash");
    ctx.fillRect(bbox.left, bbox.top, at(first) - bbox.left, bbox.height);
    ctx.globalAlpha = 0.5;
    ctx.fillRect(at(first), bbox.top, at(last) - at(first), bbox.height);
    ctx.fillRect(at(chart.end), bbox.top, bbox.left + bbox.width - at(chart.end), bbox.height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = ctx.fillStyle = colour("--soft");
    ctx.lineWidth = ratio;
    ctx.setLineDash([]); // uPlot leaves its own behind when it draws again
    const y = bbox.top - 5 * ratio, from = at(last), to = at(chart.end);
    ctx.beginPath();
    for (const x of [from, to]) { ctx.moveTo(x, y - 3 * ratio); ctx.lineTo(x, y + 3 * ratio); }
    ctx.moveTo(from, y); ctx.lineTo(to, y);
    ctx.stroke();
    if (!chart.bare) name(ctx, [["measured window", from, to], ["warm-up", bbox.left, at(first)]], y, ratio);
    ctx.restore();
  }
  function veil(u, chart) { // a stack hides the shading below it
    const { ctx, bbox } = u;
    const at = (t) => Math.min(Math.max(u.valToPos(t, "x", true), bbox.left), bbox.left + bbox.width);
    ctx.save();
    ctx.globalAlpha = 0.55;
    ctx.fillStyle = colour("--wash");
    ctx.fillRect(bbox.left, bbox.top, at(chart.warm[0]) - bbox.left, bbox.height);
    ctx.fillRect(at(chart.end), bbox.top, bbox.left + bbox.width - at(chart.end), bbox.height);
    ctx.restore();
  }
  function name(ctx, spans, y, ratio) {
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.font = `${11 * ratio}px ${colour("--sans")}`;
    for (const [text, a, b] of spans) if (b - a > ctx.measureText(text).width + 8 * ratio) ctx.fillText(text, a, y - 6 * ratio);
  }

  // -- axes, cursor, keys

  function ticks(u, axis, low, high) {
    const found = [];
    for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) {
      for (const m of high / low > (u.height < 200 ? 60 : 1e4) ? [1] : high / low < 6 ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5]) if (m * ten >= low && m * ten <= high) found.push(m * ten);
    }
    return found.length > 1 ? found : [low, Math.sqrt(low * high), high];
  }
  function options(chart, place, series, about) {
    const font = `12px ${colour("--sans")}`;
    const axis = { stroke: () => colour("--soft"), font, grid: { stroke: () => colour("--hair"), width: 1 }, ticks: { show: false } };
    return {
      width: place.clientWidth, height: place.clientHeight, padding: [chart.bare ? 14 : 24, 24, 0, 0], series,
      legend: { show: false }, focus: { alpha: 0.35 },
      cursor: { sync: { key: about.sync }, y: false, points: { size: 6 }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: chart.log ? { distr: 3, range: about.range } : { range: about.range } },
      axes: [
        { ...axis, size: 34, gap: 10, incrs: CLOCK, values: (u, all) => all.map((t) => `${Number(t.toFixed(3))} s`) },
        { ...axis, size: 66, space: about.space || 30, values: (u, all) => all.map((x) => (x === null ? "" : quantity(x, chart.unit))), ...(chart.unit.startsWith("B") ? { incrs: BINARY } : {}), ...(chart.log ? { splits: ticks, filter: (u, all) => all } : {}) },
      ],
      bands: about.bands,
      hooks: { drawClear: [(u) => shade(u, chart)], draw: chart.stacked ? [(u) => veil(u, chart)] : [], setCursor: [(u) => read(u, chart, place.nextElementSibling)] },
    };
  }
  function read(u, chart, readout) {
    const i = u.cursor.idx;
    readout.replaceChildren();
    if (i === null || i === undefined) return;
    const say = (name, text) => {
      const part = document.createElement("span"), bold = document.createElement("b");
      bold.textContent = text;
      part.append(name ? `${name} ` : "", bold);
      readout.append(part, " ");
    };
    say("at", `${Number(u.data[0][i].toFixed(3))} s`);
    const shown = chart.own || u.data; // of a stack, what each part is by itself
    u.series.forEach((s, n) => { if (n && s.show && !s.faint && typeof shown[n]?.[i] === "number") say(s.label, quantity(shown[n][i], chart.unit)); });
  }
  function keys(u, place) {
    const readout = place.nextElementSibling;
    place.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (event.key === "Escape") uPlot.sync(u.cursor.sync.key).plots.forEach((each) => each.setData(each.data, true));
      if (!step) return;
      event.preventDefault();
      readout.setAttribute("aria-live", "polite");
      const last = u.data[0].length - 1, now = u.cursor.idx ?? (step > 0 ? 0 : last);
      const next = Math.min(Math.max(now + step, 0), last);
      u.setCursor({ left: u.valToPos(u.data[0][next], "x"), top: 1 }, true, true);
    });
    place.addEventListener("pointermove", () => readout.setAttribute("aria-live", "off"));
  }
  function plot(chart, place, lines, about) {
    place.hidden = false;
    const u = new uPlot(options(chart, place, lines.series, about), lines.data, place);
    keys(u, place);
    new ResizeObserver(() => { if (place.clientWidth) u.setSize({ width: place.clientWidth, height: place.clientHeight }); }).observe(place);
    return u;
  }
  return { DASHES, byId, colour, inflated, codes, values, plot };
})();
