// SPDX-License-Identifier: Apache-2.0
// Colours of the style sheet for canvases, and how lines are told apart without them.

const DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3]];
const LINE_INKS = ['type0', 'type1', 'type2', 'type3'];
const inks = new Map();

/** Return the colour that the style sheet gives a name now. */
function ink(name) {
  if (!inks.has(name)) {
    inks.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return inks.get(name);
}

function forgetInks() {
  inks.clear();
}
