// The explorer: sliders choose a curve and a point on it, out of what explorer_data.js holds.
//
//   controls -> chosen() -> the curves of one or two protocols -> text, picture and table
(() => {
  "use strict";
  const data = window.EXPLORER;
  const at = (name) => document.getElementById(`explorer-${name}`);
  const sliders = {
    epsilon: data.epsilons,
    frequency: data.frequencies,
    clients: data.clients,
    length: data.lengths,
  };
  const start = { epsilon: 1.5, frequency: 0.6, clients: 1000, length: 64 };

  // Numbers as a reader wants them.
  const count = (n) => n.toLocaleString("en");
  const size = (x) => String(Number(x.toPrecision(3)));
  const spread = (x) => String(Number(x.toPrecision(2)));
  const small = (p) => p.toExponential(1).replace("-", "\u2011"); // a hyphen that stays in its line
  const rate = (p) => (p >= 0.001 || p === 0 ? size(p) : small(p));

  function chosen() {
    const setting = { protocol: at("protocol").value, rule: at("rule").value };
    setting.protocols = [...new Set([setting.protocol, at("beside").value])];
    for (const [name, stops] of Object.entries(sliders)) {
      setting[`${name}Index`] = Number(at(name).value);
      setting[name] = stops[setting[`${name}Index`]];
    }
    setting.code = data.codes.find((c) => c.n === setting.length && c.rule === setting.rule);
    return setting;
  }

  // Whether a protocol is simulated with every code, or with that of Hadamard alone.
  const anyCode = (protocol) => data.protocols.indexOf(protocol) < data.any_code;

  // Curves are stored in the order protocol, code, N, f.
  function curveOf(protocol, s) {
    const different = 1 + Math.max(...data.codes.map((c) => c.code));
    const number = data.protocols.indexOf(protocol);
    let place = anyCode(protocol)
      ? number * different + s.code.code
      : data.any_code * different + number - data.any_code;
    place = place * data.clients.length + s.clientsIndex;
    return data.curves[place * data.frequencies.length + s.frequencyIndex];
  }

  // Where no error was seen: where the upper end is lowest, here or before, as so low a BLER falls.
  function bound(curve, i) {
    let best = i;
    for (let j = i; j >= 0 && curve.errors[j] === 0; j--)
      if (curve.high[j] < curve.high[best]) best = j;
    return best;
  }

  function blerText(curve, i) {
    const [errors, trials] = [curve.errors[i], curve.trials[i]];
    if (errors > 0)
      return (
        `${rate(errors / trials)} (${count(errors)} of ${count(trials)} items decoded wrongly; ` +
        `95 % interval ${rate(curve.low[i])} to ${rate(curve.high[i])})`
      );
    const j = bound(curve, i);
    const where = j === i ? "" : ` already at ε = ${data.epsilons[j]}`;
    return `below ${rate(curve.high[j])} (no error in ${count(curve.trials[j])} trials${where})`;
  }

  function noiseText(s) {
    if (s.protocol === "Cash")
      return (
        "each client adds noise of standard deviation " +
        `σ = ${size(s.code.sigma[s.epsilonIndex])} to each of ${s.length} coordinates of ` +
        `±${size(1 / Math.sqrt(s.length))}; the sensitivity is ${size(s.code.sensitivity)}`
      );
    if (!anyCode(s.protocol)) return data.promises[s.protocol][s.epsilonIndex];
    const truth = 1 / (1 + Math.exp(-s.epsilon));
    return `each client sends one of ${s.length} signs, the true one with probability ${size(truth)}`;
  }

  function codeOf(protocol, s) {
    if (!anyCode(protocol))
      return `(${2 ** data.k}, ${data.k}), Hadamard, whatever length and rule are chosen`;
    const first = data.codes.find((c) => c.code === s.code.code);
    const same = first.rule === s.rule ? "" : `, the same code as by ${data.rules[first.rule]}`;
    return `(${s.length}, ${data.k}), ${data.rules[s.rule]}${same}`;
  }

  function codeText(s) {
    const [chosen, ...others] = s.protocols;
    const different = others.filter((p) => codeOf(p, s) !== codeOf(chosen, s));
    return [codeOf(chosen, s), ...different.map((p) => `${p}: ${codeOf(p, s)}`)].join("; ");
  }

  function showResult(s, curve) {
    const i = s.epsilonIndex;
    const values = { ε: s.epsilon, f: s.frequency, N: count(s.clients) };
    const setting = Object.entries(values).map(([name, value]) => `${name}\u00a0=\u00a0${value}`);
    const off = `${size(curve.off[i])} ± ${spread(curve.off_se[i])}`;
    const lines = [
      ["Setting", [s.protocol, ...setting].join(", ")],
      ["Code", codeText(s)],
      ["BLER", blerText(curve, i)],
      ["Frequency error", `${off} (mean and standard error; the true frequency is ${s.frequency})`],
      ["Privacy", noiseText(s)],
    ];
    at("result").replaceChildren(
      ...lines.map(([term, text]) => {
        const line = document.createElement("p");
        const strong = document.createElement("strong");
        strong.textContent = `${term}: `;
        line.append(strong, text);
        return line;
      }),
    );
  }

  // The picture: two panels over epsilon, both on logarithmic scales.

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function marker(kind, x, y, filled) {
    const shapes = {
      circle: `M${x - 4},${y}a4,4 0 1 0 8,0a4,4 0 1 0 -8,0`,
      square: `M${x - 3.5},${y - 3.5}h7v7h-7z`,
      triangle: `M${x - 4.5},${y - 3}h9l-4.5,8z`,
    };
    return element("path", { d: shapes[kind], class: filled ? "filled" : "hollow" });
  }

  function panel(svg, box, title, series, i) {
    const values = series.flatMap((one) => [...one.y, ...one.high]).filter((v) => v > 0);
    const bottom = Math.floor(Math.log10(Math.min(...values)));
    const top = Math.max(bottom + 1, Math.ceil(Math.log10(Math.max(...values))));
    const last = data.epsilons[data.epsilons.length - 1];
    const x = (epsilon) => box.left + (box.width * epsilon) / last;
    const y = (v) => box.top + (box.height * (top - Math.log10(v))) / (top - bottom);

    svg.append(element("text", { x: box.left, y: box.top - 10, class: "title" }, title));
    for (let power = bottom; power <= top; power++) {
      const height = y(10 ** power);
      svg.append(element("path", { d: `M${box.left},${height}h${box.width}`, class: "grid" }));
      const label = element("text", { x: box.left - 6, y: height + 4, "text-anchor": "end" });
      const exponent = String(power).replace("-", "−");
      label.append("10", element("tspan", { dy: -5, class: "power" }, exponent));
      svg.append(label);
    }
    for (let epsilon = 0; epsilon <= last; epsilon++) {
      svg.append(element("path", { d: `M${x(epsilon)},${box.top}v${box.height}`, class: "grid" }));
      const below = { x: x(epsilon), y: box.top + box.height + 16, "text-anchor": "middle" };
      svg.append(element("text", below, epsilon));
    }
    const here = x(data.epsilons[i]);
    svg.append(element("path", { d: `M${here},${box.top}v${box.height}`, class: "guide" }));
    for (const one of series) {
      const group = element("g", { class: one.chosen ? "chosen" : "other" });
      const seen = one.y.map((v, j) => (v > 0 ? `${x(data.epsilons[j])},${y(v)}` : null));
      group.append(element("polyline", { points: seen.filter(Boolean).join(" ") }));
      one.y.forEach((v, j) => {
        const across = x(data.epsilons[j]);
        if (v > 0) {
          const low = Math.max(one.low[j], 10 ** bottom);
          const interval = `M${across},${y(low)}V${y(one.high[j])}`;
          group.append(element("path", { d: interval, class: "bar" }));
          group.append(marker(one.chosen ? "circle" : "square", across, y(v), one.chosen));
        } else group.append(marker("triangle", across, y(one.high[j]), false));
      });
      if (one.chosen) {
        const value = one.y[i] > 0 ? one.y[i] : one.high[i];
        group.append(element("circle", { cx: here, cy: y(value), r: 9, class: "ring" }));
      }
      svg.append(group);
    }
  }

  function showPicture(s, curves) {
    const width = Math.max(260, at("picture").clientWidth);
    const beside = width >= 640;
    const panelWidth = (beside ? width / 2 : width) - 60;
    const panelHeight = Math.min(260, Math.max(190, panelWidth * 0.6));
    const top = 56 + (beside ? 0 : 18 * (s.protocols.length - 1)); // names, one below the other
    const height = 48 + top + (beside ? panelHeight : 2 * panelHeight + 70);
    const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
    const other = s.protocols.slice(1).map((p) => `; ${p}, open squares, stands beside it`);
    const label =
      `BLER and frequency error against ε. ${s.protocol}, filled circles, is chosen` +
      `${other.join("")}. The table below has all numbers.`;
    svg.setAttribute("aria-label", label);

    s.protocols.forEach((protocol, j) => {
      const [across, down] = beside ? [10 + 200 * j, 14] : [10, 14 + 18 * j];
      const isChosen = protocol === s.protocol;
      const group = element("g", { class: isChosen ? "chosen" : "other" });
      group.append(element("path", { d: `M${across},${down}h28`, class: "sample" }));
      group.append(marker(isChosen ? "circle" : "square", across + 14, down, isChosen));
      const words = isChosen && beside ? `${protocol}, chosen` : protocol; // if there is room
      svg.append(group, element("text", { x: across + 34, y: down + 4 }, words));
    });

    const series = (y, low, high) =>
      s.protocols.map((p) => ({
        chosen: p === s.protocol,
        y: y(curves[p]),
        low: low(curves[p]),
        high: high(curves[p]),
      }));
    const bler = series(
      (c) => c.errors.map((e, j) => e / c.trials[j]),
      (c) => c.low,
      (c) => c.high.map((h, j) => (c.errors[j] > 0 ? h : c.high[bound(c, j)])),
    );
    const off = series(
      (c) => c.off,
      (c) => c.off.map((v, j) => Math.max(v - 1.96 * c.off_se[j], v / 2)),
      (c) => c.off.map((v, j) => v + 1.96 * c.off_se[j]),
    );
    const box = { left: 44, top, width: panelWidth, height: panelHeight };
    panel(svg, box, "BLER: share of wrong items", bler, s.epsilonIndex);
    const second = { ...box };
    if (beside) second.left += width / 2;
    else second.top += panelHeight + 70;
    panel(svg, second, "Frequency error: mean of |f̂ − f|", off, s.epsilonIndex);
    for (const one of beside ? [box, second] : [second])
      svg.append(
        element(
          "text",
          { x: one.left + one.width / 2, y: one.top + one.height + 32, "text-anchor": "middle" },
          "privacy loss ε",
        ),
      );
    at("picture").replaceChildren(svg);
  }

  function showTable(s, curves) {
    const made = (tag, properties) => Object.assign(document.createElement(tag), properties);
    const head = (text, scope) => made("th", { textContent: text, scope });
    const row = (...cells) => {
      const line = made("tr");
      line.append(...cells);
      return line;
    };
    const table = made("table");
    const names = ["ε", ...s.protocols.flatMap((p) => [`${p} BLER`, `${p} frequency error`])];
    table.append(
      made("caption", {
        textContent: `f = ${s.frequency}, N = ${count(s.clients)}, code ${codeText(s)}`,
      }),
      row(...names.map((name) => head(name, "col"))),
    );
    data.epsilons.forEach((epsilon, j) => {
      const cells = s.protocols.flatMap((p) => [
        blerText(curves[p], j).split(" (")[0],
        `${size(curves[p].off[j])} ± ${spread(curves[p].off_se[j])}`,
      ]);
      table.append(
        row(head(epsilon, "row"), ...cells.map((text) => made("td", { textContent: text }))),
      );
    });
    at("table").replaceChildren(table);
  }

  function show() {
    const s = chosen();
    const curves = Object.fromEntries(s.protocols.map((p) => [p, curveOf(p, s)]));
    for (const name of Object.keys(sliders)) {
      const text = count(s[name]);
      at(`${name}-value`).textContent = text;
      at(name).setAttribute("aria-valuetext", text);
    }
    showResult(s, curves[s.protocol]);
    showPicture(s, curves);
    showTable(s, curves);
  }

  for (const name of ["protocol", "beside"])
    for (const protocol of data.protocols) at(name).add(new Option(protocol));
  at("beside").value = "Prot";
  for (const [rule, words] of Object.entries(data.rules)) at("rule").add(new Option(words, rule));
  for (const [name, stops] of Object.entries(sliders)) {
    at(name).max = stops.length - 1;
    at(name).value = stops.indexOf(start[name]);
  }
  document.getElementById("explorer").addEventListener("input", show);
  document.getElementById("explorer").addEventListener("submit", (event) => event.preventDefault());
  let lastWidth = at("picture").clientWidth;
  new ResizeObserver(() => {
    if (at("picture").clientWidth === lastWidth) return;
    lastWidth = at("picture").clientWidth;
    show();
  }).observe(at("picture"));
  show();
})();
