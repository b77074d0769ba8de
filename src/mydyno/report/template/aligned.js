// Draws what the machine did in the chosen trials: panels on one axis of time, with one cursor.
const aligned = (() => {
  "use strict";
  const { DASHES, byId, colour } = drawing;

  function unpacked(deltas, panel, recorded) {
    const tracks = panel.curves.map(() => new Array(recorded.length).fill(null));
    recorded.tracks.forEach((curve, n) => { tracks[curve] = drawing.values(deltas, recorded.at + n * recorded.length, recorded.length, panel.scale); });
    return tracks;
  }
  function piled(tracks) {
    const levels = tracks.map((t) => t.slice());
    for (let i = 0; i < levels[0].length; i++) {
      if (tracks.every((t) => t[i] === null)) continue;
      let sum = 0;
      for (const level of levels) level[i] = sum += level[i] || 0;
    }
    return levels;
  }
  // Columns begin at 0 and end with the last trial, so that all charts have one axis of time.
  function columns(deltas, panel, trial, last) {
    const recorded = trial.series[panel.id];
    if (!recorded) return { data: [[0, last], ...panel.curves.map(() => [null, null]), [null, null]], own: null };
    const around = (values, before, after) => [before, ...values, after];
    const time = around(Array.from({ length: recorded.length }, (_, i) => recorded.start + i * recorded.step), Math.min(0, recorded.start), Math.max(last, recorded.start + (recorded.length - 1) * recorded.step));
    const own = unpacked(deltas, panel, recorded);
    const drawn = (panel.stacked ? piled(own) : own).map((t) => around(t, null, null));
    const top = time.map(() => recorded.top ?? null);
    return { data: [time, ...drawn, top], own: [time, ...own.map((t) => around(t, null, null)), top] };
  }
  function extent(all, log) {
    let low = Infinity, high = -Infinity;
    for (const { data } of all) for (const column of data.slice(1)) for (const x of column) if (x !== null) { low = Math.min(low, x); high = Math.max(high, x); }
    if (high === -Infinity) return log ? [1e-3, 1] : [0, 1];
    return log ? [low * 0.8, high * 1.25] : [Math.min(low, 0), high > 0 ? high * 1.08 : 1];
  }
  function series(panel, view) {
    const tone = (n) => () => colour(`--c${panel.curves[n][1] < 0 ? view.tone : panel.curves[n][1]}`);
    const fill = (n) => () => `${tone(n)()}b0`;
    const own = panel.curves.map(([label, , dash], n) => ({
      label, stroke: panel.stacked ? "transparent" : tone(n), points: { show: false }, width: 1.75, // outlines would bury a stack's areas
      dash: panel.stacked ? [] : DASHES[dash],
      ...(panel.stacked && n === 0 ? { fill: fill(n) } : {}),
    }));
    const bands = panel.stacked ? own.slice(1).map((_, n) => ({ series: [n + 2, n + 1], fill: fill(n + 1) })) : [];
    const top = { label: "cores", stroke: () => colour("--soft"), width: 1.25, dash: [4, 3], points: { show: false }, show: panel.stacked };
    return { series: [{}, ...own, top], bands };
  }
  function about(view, trial) {
    view.warm = [trial.window[0], trial.window[0]];
    view.end = trial.window[1];
    view.tone = trial.colour;
  }
  function describe(place, panel, trial) {
    const [name, sentence] = place.previousElementSibling.children;
    name.textContent = trial.name;
    sentence.textContent = trial.sentences[panel.id];
    place.setAttribute("aria-label", `${panel.title}, ${trial.name}. ${trial.sentences[panel.id]}`);
  }
  function draw(panel, places, chosen, deltas) {
    const last = Math.max(...chosen.map((trial) => trial.last));
    const all = chosen.map((trial) => columns(deltas, panel, trial, last));
    const [low, high] = extent(all, panel.scale.log);
    return places.map((place, n) => {
      const { data, own } = all[n], view = place.view || (place.view = { unit: panel.unit, log: panel.scale.log, stacked: panel.stacked, bare: panel.id !== "work" });
      Object.assign(view, { own, low, high });
      about(view, chosen[n]);
      describe(place, panel, chosen[n]);
      if (place.plot) { place.plot.setData(data, true); return place.plot; }
      const made = series(panel, view);
      const range = () => [view.low, view.high];
      return (place.plot = drawing.plot(view, place, { data, series: made.series }, { sync: "sampled", range, bands: made.bands, space: 24 }));
    });
  }
  return async () => {
    if (!byId("sampled")) return [];
    const text = new TextDecoder().decode(await drawing.inflated(byId("sampled-key").textContent));
    const { panels, trials } = JSON.parse(text), deltas = await drawing.codes(byId("sampled").textContent);
    for (const trial of trials) trial.last = Math.max(trial.window[1], ...Object.values(trial.series).map((t) => t.start + (t.length - 1) * t.step));
    const picks = [...document.querySelectorAll(".picks select")];
    const show = () => panels.flatMap((panel) => {
      const places = [...document.querySelectorAll(`[data-panel="${panel.id}"]`)];
      return draw(panel, places, picks.map((pick) => trials[Number(pick.value)]), deltas);
    });
    for (const pick of picks) pick.addEventListener("change", show);
    for (const hidden of document.querySelectorAll("#resources .picks, #resources .hint")) hidden.hidden = false;
    return show();
  };
})();
