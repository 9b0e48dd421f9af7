// SPDX-License-Identifier: Apache-2.0
// Drawing of lines. Where there are more runs than pixels, each pixel gets its least and greatest value, so that no
// outlier disappears; the data stay whole.

/** Return the rows [first, last) of a line that lie in view, and one beyond on each side. */
function rowsInView(line, view) {
  const { xs } = line;
  const first = firstAtLeast(xs, view.from);
  const last = firstAtLeast(xs, view.to + Number.EPSILON);
  return [Math.max(0, first - 1), Math.min(xs.length, last + 1)];
}

function firstAtLeast(xs, x) {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return extents of the values of a line in view, pixel by pixel: {x, low, high, first, last, start}. */
function columnsOf(line, rows, toX, values) {
  const found = [];
  let column = null;
  for (let row = rows[0]; row < rows[1]; row++) {
    const value = values[row];
    if (!Number.isFinite(value)) continue;
    const x = Math.round(toX(line.xs[row]));
    const start = Boolean(line.splits && line.splits[row]);
    if (!column || column.x !== x || start) {
      column = { x, low: value, high: value, first: value, last: value, start };
      found.push(column);
    } else {
      if (value < column.low) column.low = value;
      if (value > column.high) column.high = value;
      column.last = value;
    }
  }
  return found;
}

/** Draw a line of values, broken where a new baseline starts. */
function drawLine(context, line, rows, toX, toY, style) {
  context.strokeStyle = ink(style.ink);
  context.lineWidth = style.width;
  context.setLineDash(style.dash);
  context.lineJoin = 'round';
  context.beginPath();
  const dense = rows[1] - rows[0] > 1.5 * style.pixels;
  if (rows[1] - rows[0] > style.pixels / 2) context.lineWidth = Math.min(1, style.width);
  if (dense) traceColumns(context, columnsOf(line, rows, toX, line.ys), toY);
  else tracePoints(context, line, rows, toX, toY);
  context.stroke();
  context.setLineDash([]);
}

function traceColumns(context, columns, toY) {
  let gap = true;
  for (const { x, low, high, first, last, start } of columns) {
    if (gap || start) context.moveTo(x, toY(first));
    else context.lineTo(x, toY(first));
    if (high > low) {
      context.lineTo(x, toY(high));
      context.lineTo(x, toY(low));
      context.lineTo(x, toY(last));
    } else if (start || gap) context.lineTo(x + 0.5, toY(first));
    gap = false;
  }
}

function tracePoints(context, line, rows, toX, toY) {
  let gap = true;
  for (let row = rows[0]; row < rows[1]; row++) {
    const value = line.ys[row];
    if (!Number.isFinite(value)) {
      gap = true;
      continue;
    }
    const [x, y] = [toX(line.xs[row]), toY(value)];
    const start = gap || (line.splits && line.splits[row]);
    if (start) context.moveTo(x, y);
    else context.lineTo(x, y);
    const end = row + 1 === rows[1] || (line.splits && line.splits[row + 1]) || !Number.isFinite(line.ys[row + 1]);
    if (start && end) { // alone: a stroke, so that it is seen
      context.moveTo(x - 4, y);
      context.lineTo(x + 4, y);
    }
    gap = false;
  }
}

/** Draw the band between two lists of values, such as value - U .. value + U. */
function drawBand(context, line, rows, toX, toY, style) {
  const [low, high] = line.band;
  context.fillStyle = ink(style.ink);
  context.globalAlpha = 0.16;
  context.beginPath(); // one path: where pieces lie upon each other they get no darker
  if (rows[1] - rows[0] > 1.5 * style.pixels) {
    const lows = columnsOf(line, rows, toX, low);
    const highs = columnsOf(line, rows, toX, high);
    for (let i = 0; i < Math.min(lows.length, highs.length); i++) {
      const top = toY(highs[i].high);
      context.rect(lows[i].x - 0.5, top, 1, Math.max(1, toY(lows[i].low) - top));
    }
  } else {
    for (let row = rows[0]; row < rows[1]; row++) {
      if (!Number.isFinite(low[row]) || !Number.isFinite(high[row])) continue;
      const x = toX(line.xs[row]);
      const top = toY(high[row]);
      context.rect(x - 2.5, top, 5, Math.max(1, toY(low[row]) - top));
    }
  }
  context.fill();
  context.globalAlpha = 1;
}

/** Draw each value with the symbol of its outcome where there is room; what did not pass always. */
function drawMarkers(context, line, rows, toX, toY, style) {
  const room = rows[1] - rows[0] < style.pixels / 7;
  for (let row = rows[0]; row < rows[1]; row++) {
    const value = line.ys[row];
    if (!Number.isFinite(value)) continue;
    const code = line.codes ? line.codes[row] : 0;
    const bad = code >= 2;
    if (!bad && (!room || !style.markers)) continue;
    drawMarker(context, toX(line.xs[row]), toY(value), code, style);
  }
}

function drawMarker(context, x, y, code, style) {
  const outcome = OUTCOMES[code ?? 0]; // what nobody has judged is a plain dot, too
  const size = style.small ? 2.4 : 3.4;
  context.lineWidth = style.small ? 1.3 : 1.7;
  context.strokeStyle = ink(outcome === 'pass' ? style.ink : outcome);
  context.fillStyle = ink(outcome === 'pass' ? style.ink : 'panel');
  context.beginPath();
  if (outcome === 'fail') {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size);
    context.lineTo(x - size, y + size);
    context.stroke();
  } else if (outcome === 'pass') {
    context.arc(x, y, style.small ? 1.5 : 2.2, 0, 2 * Math.PI);
    context.fill();
  } else {
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    if (outcome === 'inconclusive') {
      context.fillStyle = ink(outcome);
      context.beginPath();
      context.arc(x, y, size, Math.PI / 2, 1.5 * Math.PI);
      context.fill();
    }
  }
}

/** Draw a triangle at the edge for each value beyond the axis, with its number where there is room. */
function drawBeyond(context, chart, line, [first, last]) {
  const { plot, options, toX, font } = chart;
  const [low, high] = chart.held;
  context.font = `${options.small ? 10 : 11}px ${font}`;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  let free = -Infinity;
  for (let row = first; row < last; row++) {
    const value = line.ys[row];
    const upper = line.band && !options.small ? line.band[1][row] : value; // with U
    if (!(value < low || value > high || upper > high)) continue;
    const down = value < low ? 1 : -1;
    const x = toX(line.xs[row]);
    const edge = down > 0 ? plot.top + plot.height + 3 : plot.top - 3;
    const outcome = OUTCOMES[line.codes?.[row] ?? 0];
    context.fillStyle = ink(outcome === 'pass' ? line.ink || 'ink' : outcome);
    context.beginPath();
    context.moveTo(x, edge);
    context.lineTo(x - 5, edge - 8 * down);
    context.lineTo(x + 5, edge - 8 * down);
    context.fill();
    const text = value < low || value > high ? options.tickText(value) : `with U ${options.tickText(upper)}`;
    const width = context.measureText(text).width;
    const start = x + 8 + width < plot.left + plot.width ? x + 8 : x - 8 - width;
    if (start < free) continue;
    context.fillText(text, start, edge - 6 * down);
    free = start + width + 10;
  }
}

/** Draw a limit as steps; it holds from one run to the next. */
function drawLimit(context, line, rows, toX, toY, values) {
  context.strokeStyle = ink('limit');
  context.lineWidth = 1.6;
  context.setLineDash([]);
  context.beginPath();
  let last = NaN;
  for (let row = rows[0]; row < rows[1]; row++) {
    const value = values[row];
    if (!Number.isFinite(value)) continue;
    if (value === last && row < rows[1] - 1) continue;
    const x = toX(line.xs[row]);
    if (Number.isFinite(last)) context.lineTo(x, toY(last));
    else context.moveTo(x - 6, toY(value));
    context.lineTo(x, toY(value));
    if (row === rows[1] - 1) context.lineTo(x + 6, toY(value));
    last = value;
  }
  context.stroke();
}
