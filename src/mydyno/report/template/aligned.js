// Draws what the machine did in the chosen trials: strips on one axis of time, with one cursor.
const aligned = (() => {
  "use strict";
  const { DASHES, byId, colour } = drawing;

  function unpacked(deltas, strip, tape) {
    const tracks = strip.curves.map(() => new Array(tape.length).fill(null));
    tape.tracks.forEach((curve, n) => { tracks[curve] = drawing.values(deltas, tape.at + n * tape.length, tape.length, strip.scale); });
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
  function columns(deltas, strip, trial, last) {
    const tape = trial.tapes[strip.id];
    if (!tape) return { data: [[0, last], ...strip.curves.map(() => [null, null]), [null, null]], own: null };
    const around = (values, before, after) => [before, ...values, after];
    const time = around(Array.from({ length: tape.length }, (_, i) => tape.start + i * tape.step), Math.min(0, tape.start), Math.max(last, tape.start + (tape.length - 1) * tape.step));
    const own = unpacked(deltas, strip, tape);
    const drawn = (strip.stacked ? piled(own) : own).map((t) => around(t, null, null));
    const top = time.map(() => tape.top ?? null);
    return { data: [time, ...drawn, top], own: [time, ...own.map((t) => around(t, null, null)), top] };
  }
  function extent(all, log) {
    let low = Infinity, high = -Infinity;
    for (const { data } of all) for (const column of data.slice(1)) for (const x of column) if (x !== null) { low = Math.min(low, x); high = Math.max(high, x); }
    if (high === -Infinity) return log ? [1e-3, 1] : [0, 1];
    return log ? [low * 0.8, high * 1.25] : [Math.min(low, 0), high > 0 ? high * 1.08 : 1];
  }
  function series(strip, view) {
    const tone = (n) => () => colour(`--c${strip.curves[n][1] < 0 ? view.tone : strip.curves[n][1]}`);
    const fill = (n) => () => `${tone(n)()}b0`;
    const own = strip.curves.map(([label, , dash], n) => ({
      label, stroke: strip.stacked ? "transparent" : tone(n), points: { show: false }, width: 1.75, // outlines would bury a stack's areas
      dash: strip.stacked ? [] : DASHES[dash],
      ...(strip.stacked && n === 0 ? { fill: fill(n) } : {}),
    }));
    const bands = strip.stacked ? own.slice(1).map((_, n) => ({ series: [n + 2, n + 1], fill: fill(n + 1) })) : [];
    const top = { label: "cores", stroke: () => colour("--soft"), width: 1.25, dash: [4, 3], points: { show: false }, show: strip.stacked };
    return { series: [{}, ...own, top], bands };
  }
  function about(view, trial) {
    view.warm = [trial.window[0], trial.window[0]];
    view.end = trial.window[1];
    view.tone = trial.colour;
  }
  function tell(place, strip, trial) {
    const [name, said] = place.previousElementSibling.children;
    name.textContent = trial.name;
    said.textContent = trial.says[strip.id];
    place.setAttribute("aria-label", `${strip.title}, ${trial.name}. ${trial.says[strip.id]}`);
  }
  function draw(strip, places, chosen, deltas) {
    const last = Math.max(...chosen.map((trial) => trial.last));
    const all = chosen.map((trial) => columns(deltas, strip, trial, last));
    const [low, high] = extent(all, strip.scale.log);
    return places.map((place, n) => {
      const { data, own } = all[n], view = place.view || (place.view = { unit: strip.unit, log: strip.scale.log, stacked: strip.stacked, bare: strip.id !== "work" });
      Object.assign(view, { own, low, high });
      about(view, chosen[n]);
      tell(place, strip, chosen[n]);
      if (place.plot) { place.plot.setData(data, true); return place.plot; }
      const made = series(strip, view);
      const range = () => [view.low, view.high];
      return (place.plot = drawing.plot(view, place, { data, series: made.series }, { sync: "sampled", range, bands: made.bands, space: 24 }));
    });
  }
  return async () => {
    if (!byId("sampled")) return [];
    const text = new TextDecoder().decode(await drawing.inflated(byId("sampled-key").textContent));
    const { strips, trials } = JSON.parse(text), deltas = await drawing.codes(byId("sampled").textContent);
    for (const trial of trials) trial.last = Math.max(trial.window[1], ...Object.values(trial.tapes).map((t) => t.start + (t.length - 1) * t.step));
    const picks = [...document.querySelectorAll(".picks select")];
    const show = () => strips.flatMap((strip) => {
      const places = [...document.querySelectorAll(`[data-strip="${strip.id}"]`)];
      return draw(strip, places, picks.map((pick) => trials[Number(pick.value)]), deltas);
    });
    for (const pick of picks) pick.addEventListener("change", show);
    for (const hidden of document.querySelectorAll("#resources .picks, #resources .hint")) hidden.hidden = false;
    return show();
  };
})();
