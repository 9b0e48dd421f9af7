// SPDX-License-Identifier: Apache-2.0
// Drawing of what happened: events, new baselines, the level of each baseline; limits; and the frame around.

const LEVEL_RUNS_MIN = 3;

/** Draw the tick marks, labels and grid; returns nothing. */
function drawFrame(context, chart, scale, toX, toY) {
  const { plot, view, options } = chart;
  context.lineWidth = 1;
  context.font = `${options.small ? 10 : 11.5}px ${chart.font}`;
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (const value of options.ticks || scale.ticks(Math.max(2, Math.floor(plot.height / (options.small ? 24 : 30))))) {
    const y = Math.round(toY(value)) + 0.5;
    if (y < plot.top - 1 || y > plot.top + plot.height + 1) continue;
    context.strokeStyle = ink('line');
    context.beginPath();
    context.moveTo(plot.left, y);
    context.lineTo(plot.left + plot.width, y);
    context.stroke();
    context.fillStyle = ink('muted');
    context.fillText(options.tickText(value), plot.left - 6, y);
  }
  context.textAlign = 'center';
  context.textBaseline = 'top';
  const bottom = plot.top + plot.height;
  let free = -Infinity;
  for (const [x, label] of view.ticks(Math.max(1, plot.width / (options.small ? 85 : 105)))) {
    const at = toX(x);
    if (at < plot.left - 1 || at > plot.left + plot.width + 1) continue;
    context.strokeStyle = ink('line');
    context.beginPath();
    context.moveTo(Math.round(at) + 0.5, options.small ? bottom : plot.top);
    context.lineTo(Math.round(at) + 0.5, bottom + 4);
    context.stroke();
    const half = context.measureText(label).width / 2;
    const inside = Math.min(Math.max(at, half + 1), chart.width - half - 1);
    if (inside - half < free + 8) continue;
    free = inside + half;
    context.fillStyle = ink('muted');
    context.fillText(label, inside, bottom + 6);
  }
  context.strokeStyle = ink('muted');
  context.beginPath();
  context.moveTo(plot.left, bottom + 0.5);
  context.lineTo(plot.left + plot.width, bottom + 0.5);
  context.stroke();
}

/** Draw a dotted line where a new baseline starts, once for lines that start theirs close by. */
function drawBaselineStarts(context, chart, toX) {
  const { plot, lines } = chart;
  const taken = chart.eventPlaces.filter(({ event }) => event.kind === 'bench-change').map(({ x }) => x);
  context.lineWidth = 1;
  context.strokeStyle = ink('muted');
  context.setLineDash([1, 3]);
  for (const line of lines) {
    for (const { first } of line.baselines.slice(1)) {
      const x = toX(line.xs[first]);
      if (!(x >= plot.left && x <= plot.left + plot.width) || taken.some((other) => Math.abs(other - x) < 14)) continue;
      taken.push(x);
      context.beginPath();
      context.moveTo(Math.round(x) - 2.5, plot.top);
      context.lineTo(Math.round(x) - 2.5, plot.top + plot.height);
      context.stroke();
    }
  }
  context.setLineDash([]);
}

/** Draw the median of each baseline as a level, with a rim so that it is seen upon the values. */
function drawLevels(context, line, toX, toY, plot) {
  for (const { first, last, median, count } of line.baselines) {
    const from = Math.max(plot.left, toX(line.xs[first]));
    const to = Math.min(plot.left + plot.width, toX(line.xs[last]));
    if (count < LEVEL_RUNS_MIN || !(to > from)) continue;
    for (const [name, width, dash] of [['page', 3, []], ['ink', 1.2, [8, 4]]]) {
      context.strokeStyle = ink(name);
      context.lineWidth = width;
      context.setLineDash(dash);
      context.globalAlpha = name === 'page' ? 0.6 : 1;
      context.beginPath();
      context.moveTo(from, toY(median));
      context.lineTo(to, toY(median));
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** Draw limits that are the same for all runs as one line, with its value; others as steps. */
function drawLimits(context, chart, rows, toX, toY) {
  const { plot, options, lines } = chart;
  if (chart.fixedLimits) {
    context.strokeStyle = context.fillStyle = ink('limit');
    context.lineWidth = options.small ? 1.2 : 1.7;
    for (const value of chart.fixedLimits) {
      const y = toY(value);
      context.beginPath();
      context.moveTo(plot.left, y);
      context.lineTo(plot.left + plot.width, y);
      context.stroke();
      if (options.small || options.plainLimits) continue;
      context.font = `11.5px ${chart.font}`;
      context.textAlign = 'right';
      const above = y > plot.top + 18;
      context.textBaseline = above ? 'bottom' : 'top';
      context.fillText(`limit ${options.tickText(value)}`, plot.left + plot.width - 4, y + (above ? -3 : 4));
    }
    return;
  }
  lines.forEach((line, index) => {
    for (const values of line.limits || []) drawLimit(context, line, rows[index], toX, toY, values);
  });
}

/** Return the limits of all lines where they are the same in every run, else null. */
function fixedLimitsOf(lines) {
  const found = new Set();
  for (const line of lines) {
    for (const values of line.limits || []) {
      const [first] = values;
      if (!values.every((value) => value === first)) return null;
      found.add(first);
    }
  }
  return found.size <= 2 ? [...found] : null;
}

/** Draw events as symbols on top, each with a line down; returns where they stand, for the pointer. */
function drawEvents(context, chart, toX) {
  const { plot, options } = chart;
  const places = [];
  for (const event of chart.events) {
    const x = toX(chart.view.x[event.run]);
    if (!(x >= plot.left - 1 && x <= plot.left + plot.width + 1)) continue;
    places.push({ x, event });
    const name = event.kind === 'regression' ? 'fail' : event.kind === 'improvement' ? 'pass' : 'muted';
    context.strokeStyle = ink(name);
    context.lineWidth = 1;
    context.setLineDash(event.kind === 'bench-change' ? [2, 4] : [4, 2]);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, plot.top);
    context.lineTo(Math.round(x) + 0.5, plot.top + plot.height);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = ink(name);
    context.font = `${options.small ? 9 : 12}px ${chart.font}`;
    context.textAlign = 'center';
    context.textBaseline = 'bottom';
    context.fillText(EVENT_SYMBOLS[event.kind] || '•', x, plot.top);
  }
  return places;
}

/** Return the stretches of a line between changes of the bench, each with its median. */
function baselinesOf(keys, values) {
  const found = [];
  for (let row = 0; row < keys.length; row++) {
    if (!found.length || keys[row] !== keys[found[found.length - 1].last]) found.push({ first: row, last: row, median: NaN, count: 0 });
    else found[found.length - 1].last = row;
  }
  for (const one of found) {
    const held = values.slice(one.first, one.last + 1).filter(Number.isFinite).sort();
    const middle = held.length >> 1;
    one.median = held.length % 2 ? held[middle] : (held[middle - 1] + held[middle]) / 2;
    one.count = held.length;
  }
  return found;
}
